//! The page: its files, built into the program.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, REFERRER_POLICY};
use http::{HeaderName, Response};

/// Nothing from elsewhere, nothing inline, in no frame.
const POLICY: &str =
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'";

const NO_SNIFFING: HeaderName = HeaderName::from_static("x-content-type-options");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// A file of the page.
struct File {
    path: &'static str,
    content_type: &'static str,
    content: &'static [u8],
}

/// A file by its name in the page's folder.
macro_rules! file {
    ($name:literal, $content_type:expr) => {
        File {
            path: concat!("/", $name),
            content_type: $content_type,
            content: include_bytes!(concat!("../page/", $name)),
        }
    };
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";
const JSON: &str = "application/json";

const FILES: &[File] = &[
    file!("age.js", SCRIPT),
    file!("config.js", SCRIPT),
    file!("connection.js", SCRIPT),
    file!("icon.svg", SVG),
    file!("index.html", HTML),
    file!("main.js", SCRIPT),
    file!("panel.js", SCRIPT),
    file!("picker.js", SCRIPT),
    file!("rate.js", SCRIPT),
    file!("rawjson.js", SCRIPT),
    file!("reducer.js", SCRIPT),
    file!("rows.js", SCRIPT),
    file!("scope.js", SCRIPT),
    file!("status.js", SCRIPT),
    file!("style.css", CSS),
    file!("summary.js", SCRIPT),
    file!("table.js", SCRIPT),
];

/// The page's files, and what the gateway tells it.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    config: Bytes,
}

impl Page {
    /// A page that is told `config`, a JSON text, at `/config.json`.
    pub(crate) fn new(config: String) -> Self {
        Self {
            config: config.into(),
        }
    }

    /// What stands at a path, if anything does.
    pub(crate) fn answer(&self, path: &str) -> Option<Response<Bytes>> {
        if path == "/config.json" {
            return Some(response(JSON, self.config.clone()));
        }
        let path = if path == "/" { "/index.html" } else { path };
        let file = FILES.iter().find(|file| file.path == path)?;
        Some(response(file.content_type, Bytes::from_static(file.content)))
    }
}

fn response(content_type: &'static str, content: Bytes) -> Response<Bytes> {
    let mut response = Response::new(content);
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_TYPE, content_type),
        (CONTENT_SECURITY_POLICY, POLICY),
        // The files are this program's: those of another version must not stay with a browser.
        (CACHE_CONTROL, "no-store"),
        (NO_SNIFFING, "nosniff"),
        (RESOURCE_POLICY, "same-origin"),
        (REFERRER_POLICY, "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_page_is_built_in() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
        let mut found: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap())
            .filter(|entry| entry.file_type().unwrap().is_file())
            .map(|entry| format!("/{}", entry.file_name().to_str().unwrap()))
            .collect();
        found.sort_unstable();
        let built_in: Vec<&str> = FILES.iter().map(|file| file.path).collect();
        assert_eq!(built_in, found);
    }

    #[test]
    fn files_have_their_types_and_a_strict_policy() {
        let page = Page::new("{}".to_owned());
        for (path, content_type) in [
            ("/", HTML),
            ("/index.html", HTML),
            ("/main.js", SCRIPT),
            ("/style.css", CSS),
            ("/icon.svg", SVG),
            ("/config.json", JSON),
        ] {
            let response = page.answer(path).unwrap();
            assert_eq!(response.headers()[CONTENT_TYPE], content_type, "{path}");
            assert_eq!(response.headers()[CACHE_CONTROL], "no-store");
            let policy = response.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap();
            assert!(policy.starts_with("default-src 'self';"));
            assert!(!policy.contains("unsafe"));
        }
    }

    #[test]
    fn nothing_else_is_there() {
        let page = Page::new("{}".to_owned());
        for path in ["", "/tests", "/../Cargo.toml", "/MAIN.js", "/main.js/"] {
            assert!(page.answer(path).is_none(), "{path:?}");
        }
    }
}
