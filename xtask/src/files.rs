//! Reading and writing files, with errors that name the path.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A file or folder could not be read, written or removed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}", path.display())]
pub(crate) struct FileError {
    action: &'static str,
    path: PathBuf,
    source: io::Error,
}

pub(crate) fn read(path: &Path) -> Result<String, FileError> {
    fs::read_to_string(path).map_err(naming("read", path))
}

pub(crate) fn write(path: &Path, text: &str) -> Result<(), FileError> {
    fs::write(path, text).map_err(naming("write", path))
}

/// Writes through a temporary name beside it, so that a reader never sees half a file.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), FileError> {
    let beside = path.with_extension(format!("tmp-{}", std::process::id()));
    write(&beside, text)?;
    rename(&beside, path)
}

pub(crate) fn rename(from: &Path, to: &Path) -> Result<(), FileError> {
    fs::rename(from, to).map_err(naming("move into place", to))
}

pub(crate) fn create_folder(path: &Path) -> Result<(), FileError> {
    fs::create_dir_all(path).map_err(naming("create", path))
}

pub(crate) fn remove_folder(path: &Path) -> Result<(), FileError> {
    match fs::remove_dir_all(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(naming("remove", path)(source)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The same path from the root, without asking that it exists.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, FileError> {
    std::path::absolute(path).map_err(naming("resolve", path))
}

pub(crate) fn naming(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FileError {
    move |source| FileError {
        action,
        path: path.to_owned(),
        source,
    }
}
