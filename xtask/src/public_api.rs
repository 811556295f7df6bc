//! `cargo xtask public-api`: the names that each library offers, one list a library, read from its sources.
//!
//! The lists are in git, so that a change of the public API is seen where it is reviewed; `cargo xtask tidy` compares them.
//! What the compiler alone knows (signatures, what macros write, what is implemented for all types) is not in them.

mod crate_items;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use syn::ext::IdentExt as _;
use syn::{Fields, ImplItem, Item, TraitItem, Type, Visibility};

use self::crate_items::{CrateItems, Place};
use crate::files::{self, FileError};
use crate::workspace;

/// The folder of the lists.
const FOLDER: &str = "docs/public-api";

/// The lists cannot be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PublicApiError {
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A source is not Rust that this program can read.
    #[error("cannot read {} as Rust", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: syn::Error,
    },
}

/// Writes all lists anew.
///
/// # Errors
///
/// When a source cannot be read, or a list not written.
pub(crate) fn run() -> Result<ExitCode, PublicApiError> {
    let root = workspace::root();
    files::create_folder(&root.join(FOLDER))?;
    for (path, text) in lists(&root)? {
        files::replace(&root.join(&path), &text)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The lists that are not what the sources have.
pub(crate) fn stale(root: &Path) -> Result<Vec<PathBuf>, PublicApiError> {
    let lists = lists(root)?.into_iter();
    Ok(lists
        .filter(|(path, text)| files::read(&root.join(path)).ok().as_ref() != Some(text))
        .map(|(path, _)| path)
        .collect())
}

/// Each library's list, by its path in the workspace.
fn lists(root: &Path) -> Result<BTreeMap<PathBuf, String>, PublicApiError> {
    let folder = root.join("crates");
    let entries = std::fs::read_dir(&folder).map_err(files::naming("list", &folder))?;
    let mut lists = BTreeMap::new();
    for entry in entries.flatten() {
        let library = entry.file_name().to_string_lossy().into_owned();
        let items = CrateItems::read(&entry.path().join("src/lib.rs"))?;
        let mut lines: Vec<String> = Vec::new();
        list_module(&items, &[], "", &mut lines);
        let path = Path::new(FOLDER).join(format!("krm-stream-{library}.txt"));
        lists.insert(path, lines.join("\n") + "\n");
    }
    Ok(lists)
}

/// Adds what a public module offers.
fn list_module(items: &CrateItems, module: &[String], prefix: &str, lines: &mut Vec<String>) {
    let mut exports = BTreeMap::new();
    for item in items.of(module) {
        if let Item::Use(exported) = item
            && is_public(&exported.vis)
        {
            for (name, path) in crate_items::uses(exported) {
                let place = items.resolve(module, &path).unwrap_or(Place::Foreign);
                exports.insert(name, place);
            }
        } else if let Some((name, visibility)) = crate_items::named(item)
            && is_public(visibility)
        {
            exports.insert(name.clone(), Place::Own(module.to_vec(), name));
        }
    }
    for (name, place) in exports {
        let shown = format!("{prefix}{name}");
        let Place::Own(home, own_name) = &place else {
            lines.push(format!("use {shown}, of another crate"));
            continue;
        };
        let item = items.item(home, own_name);
        if let Some(Item::Mod(_)) = item {
            lines.push(format!("mod {shown}"));
            let inner: Vec<String> = home.iter().chain([own_name]).cloned().collect();
            list_module(items, &inner, &format!("{shown}::"), lines);
        } else {
            list_item(items, &place, item, &shown, lines);
        }
    }
}

/// Adds an item, and what belongs to it in the order of names.
fn list_item(items: &CrateItems, place: &Place, item: Option<&Item>, shown: &str, lines: &mut Vec<String>) {
    let (kind, mut members) = match item {
        Some(Item::Struct(one)) => ("struct", fields(&one.fields, shown)),
        Some(Item::Enum(one)) => ("enum", one.variants.iter().map(|it| variant(it, shown)).collect()),
        Some(Item::Trait(one)) => (
            "trait",
            one.items.iter().filter_map(|it| of_trait(it, shown)).collect(),
        ),
        Some(Item::Fn(_)) => ("fn", BTreeSet::new()),
        Some(Item::Const(_)) => ("const", BTreeSet::new()),
        Some(Item::Static(_)) => ("static", BTreeSet::new()),
        Some(Item::Type(_)) => ("type", BTreeSet::new()),
        Some(_) | None => ("what a macro writes:", BTreeSet::new()),
    };
    let mut traits = item.map(crate_items::derived).unwrap_or_default();
    for (module, block) in items.impls() {
        let Type::Path(of) = &*block.self_ty else { continue };
        // What a macro writes is no item of its module, and may still be implemented there.
        let path = crate_items::segments(&of.path);
        let written =
            matches!(path.as_slice(), [name] if *place == Place::Own(module.to_vec(), name.clone()));
        if !written && items.resolve(module, &path).as_ref() != Some(place) {
            continue;
        }
        if let Some((_, implemented, _)) = &block.trait_ {
            traits.extend(implemented.segments.last().map(|last| last.ident.to_string()));
        } else {
            members.extend(block.items.iter().filter_map(|it| of_impl(it, shown)));
        }
    }
    let mut line = format!("{kind} {shown}");
    if item.is_some_and(|item| crate_items::has_attribute(item, "non_exhaustive")) {
        line += " (non-exhaustive)";
    }
    if !traits.is_empty() {
        line += ": ";
        line += &traits.into_iter().collect::<Vec<_>>().join(" + ");
    }
    lines.push(line);
    lines.extend(members);
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn fields(fields: &Fields, of: &str) -> BTreeSet<String> {
    let public = fields
        .iter()
        .enumerate()
        .filter(|(_, field)| is_public(&field.vis));
    public
        .map(|(at, field)| match &field.ident {
            Some(name) => format!("field {of}::{}", name.unraw()),
            None => format!("field {of}::{at}"),
        })
        .collect()
}

fn variant(variant: &syn::Variant, of: &str) -> String {
    let shape = match &variant.fields {
        Fields::Unit => String::new(),
        Fields::Unnamed(fields) => format!("({})", vec!["_"; fields.unnamed.len()].join(", ")),
        Fields::Named(fields) => {
            let names = fields.named.iter().filter_map(|field| field.ident.as_ref());
            format!(
                " {{ {} }}",
                names
                    .map(|name| name.unraw().to_string())
                    .collect::<Vec<_>>()
                    .join(", ")
            )
        }
    };
    format!("variant {of}::{}{shape}", variant.ident)
}

fn of_trait(item: &TraitItem, of: &str) -> Option<String> {
    Some(match item {
        TraitItem::Fn(one) if one.default.is_some() => format!("fn {of}::{} (provided)", one.sig.ident),
        TraitItem::Fn(one) => format!("fn {of}::{}", one.sig.ident),
        TraitItem::Type(one) => format!("type {of}::{}", one.ident),
        TraitItem::Const(one) => format!("const {of}::{}", one.ident),
        _ => return None,
    })
}

fn of_impl(item: &ImplItem, of: &str) -> Option<String> {
    Some(match item {
        ImplItem::Fn(one) if is_public(&one.vis) => {
            let kind = if one.sig.asyncness.is_some() {
                "async fn"
            } else {
                "fn"
            };
            format!("{kind} {of}::{}", one.sig.ident)
        }
        ImplItem::Const(one) if is_public(&one.vis) => format!("const {of}::{}", one.ident),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(library: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lib.rs");
        files::write(&path, library).unwrap();
        files::create_folder(&folder.path().join("inner")).unwrap();
        files::write(
            &folder.path().join("inner.rs"),
            "mod deep;\npub use deep::Deep as Renamed;\n",
        )
        .unwrap();
        files::write(
            &folder.path().join("inner/deep.rs"),
            "pub struct Deep { pub shown: u8, kept: u8 }\nimpl super::Renamed { pub fn of_deep() {} fn kept() {} }",
        )
        .unwrap();
        let items = CrateItems::read(&path).unwrap();
        let mut lines = Vec::new();
        list_module(&items, &[], "", &mut lines);
        lines
    }

    #[test]
    fn what_is_exported_is_listed_with_its_members_and_traits() {
        let library = "mod own { #[derive(Clone)] #[non_exhaustive] pub enum State { On, Off(u8, u8), At { time: u8 } }\n\
                       impl std::fmt::Display for State {} }\n\
                       pub use own::State;\n\
                       pub trait Seam { type Error; fn ask(&self); fn may(&self) {} }\n\
                       pub fn free() {}\n\
                       pub(crate) fn kept() {}\n\
                       pub mod json { pub const DEPTH: u8 = 1; }\n\
                       pub use serde_json;";
        assert_eq!(
            listed(library),
            [
                "trait Seam",
                "fn Seam::ask",
                "fn Seam::may (provided)",
                "type Seam::Error",
                "enum State (non-exhaustive): Clone + Display",
                "variant State::At { time }",
                "variant State::Off(_, _)",
                "variant State::On",
                "fn free",
                "mod json",
                "const json::DEPTH",
                "use serde_json, of another crate",
            ]
        );
    }

    #[test]
    fn what_a_macro_writes_is_listed_with_what_is_implemented_for_it() {
        assert_eq!(
            listed(
                "mod own { pinned! { pub struct Body {} }\nimpl Iterator for Body {}\nimpl Body { pub fn shown() {} } }\npub use own::Body;"
            ),
            ["what a macro writes: Body: Iterator", "fn Body::shown"]
        );
    }

    #[test]
    fn exports_are_followed_through_modules_and_new_names() {
        assert_eq!(
            listed("mod inner;\npub use inner::Renamed as Last;"),
            ["struct Last", "field Last::shown", "fn Last::of_deep"]
        );
        assert_eq!(
            listed(
                "mod inner;\nmod other { pub(crate) struct Deep; impl Deep { pub fn of_another() {} } }\npub use inner::Renamed;"
            ),
            ["struct Renamed", "field Renamed::shown", "fn Renamed::of_deep"]
        );
    }
}
