// The entry point of kube-apiserver, as a module of our own: `go install` refuses the one of Kubernetes, whose
// go.mod replaces its staging modules by folders.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() { os.Exit(cli.Run(app.NewAPIServerCommand())) }
