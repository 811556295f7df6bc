//! The keys of one control plane: its authority, the server's certificate, a client's, the token signer.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::files::{self, FileError};
use crate::process::{self, ProcessError};

/// Who the client certificate names; the group is the one that RBAC lets do everything.
const CLIENT: &str = "/O=system:masters/CN=admin-certificate";

/// Sections for `openssl`: which extensions a certificate of each sort carries.
const EXTENSIONS: &str = "\
[req]
distinguished_name = name
prompt = no
[name]
CN = krm-stream
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[server]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectAltName = IP:127.0.0.1, DNS:localhost, DNS:kubernetes, DNS:kubernetes.default
[client]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = clientAuth
";

/// Keys could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CertificateError {
    /// The folder cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// `openssl` is missing or failed.
    #[error("cannot make certificates")]
    Openssl(#[from] ProcessError),
}

/// The files of the keys in a folder.
#[derive(Debug)]
pub(crate) struct Certificates {
    folder: PathBuf,
}

impl Certificates {
    /// The files in `folder`, which may not exist yet.
    pub(crate) fn at(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The certificate that signs the others; what a client trusts.
    pub(crate) fn authority(&self) -> PathBuf {
        self.folder.join("authority.crt")
    }

    /// The certificate that the API server shows.
    pub(crate) fn server(&self) -> PathBuf {
        self.folder.join("server.crt")
    }

    /// The key of [`Self::server`].
    pub(crate) fn server_key(&self) -> PathBuf {
        self.folder.join("server.key")
    }

    /// A client certificate of an administrator.
    pub(crate) fn client(&self) -> PathBuf {
        self.folder.join("client.crt")
    }

    /// The key of [`Self::client`].
    pub(crate) fn client_key(&self) -> PathBuf {
        self.folder.join("client.key")
    }

    /// The key that signs service account tokens.
    pub(crate) fn token_key(&self) -> PathBuf {
        self.folder.join("service-account.key")
    }

    /// The key that verifies them.
    pub(crate) fn token_public_key(&self) -> PathBuf {
        self.folder.join("service-account.pub")
    }

    /// Makes all of them, valid for 30 days.
    pub(crate) fn make(&self) -> Result<(), CertificateError> {
        files::create_folder(&self.folder)?;
        let configuration = self.folder.join("openssl.conf");
        files::write(&configuration, EXTENSIONS)?;
        let openssl = Openssl {
            program: process::find("openssl", "install it (apt-get install openssl)")?,
            folder: self.folder.clone(),
            configuration,
        };
        openssl.authority()?;
        openssl.signed("server", "/CN=kube-apiserver")?;
        openssl.signed("client", CLIENT)?;
        openssl.key(&self.token_key())?;
        let words = ["pkey", "-in", "service-account.key", "-pubout", "-out"];
        openssl.run(&words, &[&self.token_public_key()])
    }
}

struct Openssl {
    program: PathBuf,
    folder: PathBuf,
    configuration: PathBuf,
}

impl Openssl {
    fn run(&self, words: &[&str], more: &[&Path]) -> Result<(), CertificateError> {
        let mut command = Command::new(&self.program);
        command
            .args(words)
            .args(more)
            .current_dir(&self.folder)
            .env("OPENSSL_CONF", &self.configuration);
        process::output(&mut command)?;
        Ok(())
    }

    fn key(&self, path: &Path) -> Result<(), CertificateError> {
        self.run(
            &[
                "genpkey",
                "-algorithm",
                "EC",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-out",
            ],
            &[path],
        )
    }

    fn authority(&self) -> Result<(), CertificateError> {
        self.key(Path::new("authority.key"))?;
        let request =
            "req -x509 -new -key authority.key -subj /CN=krm-stream-authority -extensions authority -days 30";
        let words: Vec<&str> = request
            .split(' ')
            .chain(["-out", "authority.crt", "-config"])
            .collect();
        self.run(&words, &[&self.configuration])
    }

    fn signed(&self, name: &str, subject: &str) -> Result<(), CertificateError> {
        let (key, request, certificate) = (
            format!("{name}.key"),
            format!("{name}.csr"),
            format!("{name}.crt"),
        );
        self.key(Path::new(&key))?;
        let words = [
            "req", "-new", "-key", &key, "-subj", subject, "-out", &request, "-config",
        ];
        self.run(&words, &[&self.configuration])?;
        let signing = "x509 -req -CA authority.crt -CAkey authority.key -CAcreateserial -days 30";
        let words: Vec<&str> = signing
            .split(' ')
            .chain([
                "-in",
                &request,
                "-out",
                &certificate,
                "-extensions",
                name,
                "-extfile",
            ])
            .collect();
        self.run(&words, &[&self.configuration])
    }
}
