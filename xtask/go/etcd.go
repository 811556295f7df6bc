// The entry point of etcd, as a module of our own: `go install` refuses etcd's, whose go.mod has replacements.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
