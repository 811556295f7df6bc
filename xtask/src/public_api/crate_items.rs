//! The items of one crate by module, and what a path in it means.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use syn::ext::IdentExt as _;
use syn::punctuated::Punctuated;
use syn::{Attribute, Ident, Item, ItemImpl, ItemUse, Meta, Token, UseTree, Visibility};

use super::PublicApiError;
use crate::files;

/// Where something is defined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In this module of the crate, under this name.
    Own(Vec<String>, String),
    /// In another crate.
    Foreign,
}

/// A crate's items, without those of its tests.
#[derive(Default)]
pub(super) struct CrateItems {
    modules: BTreeMap<Vec<String>, Vec<Item>>,
}

impl CrateItems {
    /// Reads a crate from its root file.
    pub(super) fn read(root: &Path) -> Result<Self, PublicApiError> {
        let mut items = Self::default();
        let folder = root.parent().unwrap_or(root);
        items.read_file(root, folder, &[])?;
        Ok(items)
    }

    /// The items of a module.
    pub(super) fn of(&self, module: &[String]) -> impl Iterator<Item = &Item> {
        self.modules.get(module).into_iter().flatten()
    }

    /// The item that a module defines under this name.
    pub(super) fn item(&self, module: &[String], name: &str) -> Option<&Item> {
        self.of(module)
            .find(|item| named(item).is_some_and(|(defined, _)| defined == name))
    }

    /// All implementations, with the modules that they are in.
    pub(super) fn impls(&self) -> impl Iterator<Item = (&[String], &ItemImpl)> {
        self.modules.iter().flat_map(|(module, items)| {
            items.iter().filter_map(|item| match item {
                Item::Impl(block) => Some((module.as_slice(), block)),
                _ => None,
            })
        })
    }

    /// Where a path leads that stands in this module, within the crate.
    pub(super) fn resolve(&self, module: &[String], path: &[String]) -> Option<Place> {
        self.follow(module, path, false)
    }

    /// `is_named` says that the path led to this module, so that what it names next is there, if only by a macro.
    fn follow(&self, module: &[String], path: &[String], is_named: bool) -> Option<Place> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => return self.follow(&[], rest, true),
            "self" => return self.follow(module, rest, true),
            "super" => return self.follow(module.split_last()?.1, rest, true),
            _ => {}
        }
        let place = if self.item(module, first).is_some() {
            Place::Own(module.to_vec(), first.clone())
        } else {
            let mut imports = self.of(module).filter_map(|item| match item {
                Item::Use(used) => uses(used).into_iter().find(|(name, _)| name == first),
                _ => None,
            });
            match imports.next() {
                // A crate that is imported under its own name.
                Some((_, target)) if target.first() == Some(first) => return None,
                Some((_, target)) => self.follow(module, &target, false)?,
                None if is_named => Place::Own(module.to_vec(), first.clone()),
                None => return None,
            }
        };
        match place {
            Place::Own(home, name) if !rest.is_empty() => {
                let inner: Vec<String> = home.into_iter().chain([name]).collect();
                self.follow(&inner, rest, true)
            }
            Place::Own(..) | Place::Foreign => Some(place),
        }
    }

    fn read_file(&mut self, path: &Path, folder: &Path, module: &[String]) -> Result<(), PublicApiError> {
        let file = syn::parse_file(&files::read(path)?).map_err(|source| PublicApiError::Parse {
            path: path.to_owned(),
            source,
        })?;
        self.add(file.items, folder, module)
    }

    /// Adds a module's items, and its modules' items, whose files are in this folder.
    fn add(&mut self, items: Vec<Item>, folder: &Path, module: &[String]) -> Result<(), PublicApiError> {
        let mut own = Vec::new();
        for mut item in items {
            if let Item::Mod(inner) = &mut item {
                if is_of_tests(&inner.attrs) {
                    continue;
                }
                let name = inner.ident.unraw().to_string();
                let path: Vec<String> = module.iter().cloned().chain([name.clone()]).collect();
                let below: PathBuf = folder.join(&name);
                match inner.content.take() {
                    Some((_, items)) => self.add(items, &below, &path)?,
                    None => self.read_file(&folder.join(format!("{name}.rs")), &below, &path)?,
                }
            }
            own.push(item);
        }
        self.modules.insert(module.to_vec(), own);
        Ok(())
    }
}

/// The names that a `use` brings, and what each means.
pub(super) fn uses(used: &ItemUse) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    branch(&used.tree, &mut Vec::new(), &mut found);
    found
}

fn branch(tree: &UseTree, before: &mut Vec<String>, found: &mut Vec<(String, Vec<String>)>) {
    let with = |last: &Ident| before.iter().cloned().chain([last.unraw().to_string()]).collect();
    match tree {
        UseTree::Path(path) => {
            before.push(path.ident.unraw().to_string());
            branch(&path.tree, before, found);
            before.pop();
        }
        UseTree::Name(name) if name.ident == "self" => {
            found.extend(before.last().cloned().map(|last| (last, before.clone())));
        }
        UseTree::Name(name) => found.push((name.ident.unraw().to_string(), with(&name.ident))),
        UseTree::Rename(rename) => found.push((rename.rename.unraw().to_string(), with(&rename.ident))),
        UseTree::Group(group) => {
            for tree in &group.items {
                branch(tree, before, found);
            }
        }
        // A crate root lists what it exports by name.
        UseTree::Glob(_) => {}
    }
}

/// The name that an item defines, and who sees it.
pub(super) fn named(item: &Item) -> Option<(String, &Visibility)> {
    let (name, visibility) = match item {
        Item::Const(one) => (&one.ident, &one.vis),
        Item::Enum(one) => (&one.ident, &one.vis),
        Item::Fn(one) => (&one.sig.ident, &one.vis),
        Item::Mod(one) => (&one.ident, &one.vis),
        Item::Static(one) => (&one.ident, &one.vis),
        Item::Struct(one) => (&one.ident, &one.vis),
        Item::Trait(one) => (&one.ident, &one.vis),
        Item::Type(one) => (&one.ident, &one.vis),
        _ => return None,
    };
    Some((name.unraw().to_string(), visibility))
}

/// The names of a path, without what stands in angle brackets.
pub(super) fn segments(path: &syn::Path) -> Vec<String> {
    path.segments
        .iter()
        .map(|segment| segment.ident.unraw().to_string())
        .collect()
}

/// The traits that an item derives.
pub(super) fn derived(item: &Item) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for attribute in attributes(item) {
        if attribute.path().is_ident("derive")
            && let Ok(paths) = attribute.parse_args_with(Punctuated::<syn::Path, Token![,]>::parse_terminated)
        {
            found.extend(
                paths
                    .iter()
                    .filter_map(|path| path.segments.last())
                    .map(|last| last.ident.to_string()),
            );
        }
    }
    found
}

pub(super) fn has_attribute(item: &Item, name: &str) -> bool {
    attributes(item)
        .iter()
        .any(|attribute| attribute.path().is_ident(name))
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Enum(one) => &one.attrs,
        Item::Struct(one) => &one.attrs,
        _ => &[],
    }
}

fn is_of_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let Meta::List(list) = &attribute.meta else {
            return false;
        };
        let condition = list.tokens.to_string();
        list.path.is_ident("cfg") && matches!(condition.as_str(), "test" | "doctest")
    })
}
