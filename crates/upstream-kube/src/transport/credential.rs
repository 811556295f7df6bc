//! A token in a file that somebody else rotates.

use std::path::PathBuf;
use std::time::Duration;

use http::HeaderValue;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::NoAnswer;

/// How long a token that was read is used. Kubelets rotate well before a token expires, so a minute is enough, as in
/// client-go.
const READ_AGAIN_AFTER: Duration = Duration::from_mins(1);

/// A bearer token from a file: read again after a minute, and at once after it was rejected.
pub(crate) struct TokenFile {
    path: PathBuf,
    read: Mutex<Read>,
}

/// What is known of the file.
#[derive(Clone)]
enum Read {
    /// Nothing yet.
    Never,
    /// This header, until then.
    Fresh { header: HeaderValue, until: Instant },
    /// This header, if the file cannot be read: files may be taken away after start to limit exposure
    /// ([kubernetes#68164](https://github.com/kubernetes/kubernetes/issues/68164)).
    Stale { header: HeaderValue },
}

impl TokenFile {
    pub(crate) fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            read: Mutex::new(Read::Never),
        }
    }

    /// The value of the `Authorization` header.
    pub(super) async fn header(&self) -> Result<HeaderValue, NoAnswer> {
        let mut read = self.read.lock().await;
        let last = match &*read {
            Read::Never => None,
            Read::Fresh { header, until } if Instant::now() < *until => return Ok(header.clone()),
            Read::Fresh { header, .. } | Read::Stale { header } => Some(header.clone()),
        };
        let header = self.load().await.or_else(|error| last.ok_or(error))?;
        *read = Read::Fresh {
            header: header.clone(),
            until: Instant::now() + READ_AGAIN_AFTER,
        };
        Ok(header)
    }

    /// The next [`header`](Self::header) reads the file.
    pub(super) async fn forget(&self) {
        let mut read = self.read.lock().await;
        if let Read::Fresh { header, .. } = &*read {
            *read = Read::Stale {
                header: header.clone(),
            };
        }
    }

    async fn load(&self) -> Result<HeaderValue, NoAnswer> {
        let path = self.path.clone();
        let token = tokio::task::spawn_blocking(move || std::fs::read_to_string(path))
            .await
            .ok()
            .and_then(Result::ok)
            .ok_or(NoAnswer::Credential("the token file could not be read"))?;
        let token = token.trim();
        if token.is_empty() {
            return Err(NoAnswer::Credential("the token file is empty"));
        }
        let mut header = HeaderValue::try_from(format!("Bearer {token}"))
            .map_err(|_| NoAnswer::Credential("the token file holds no legal token"))?;
        header.set_sensitive(true);
        Ok(header)
    }
}
