//! Whatever happens to a collection, its older states and its log tell one story.

use std::{collections::BTreeMap, time::UNIX_EPOCH};

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{resource::built_in, selector::LabelSelector};

use super::*;

const HISTORY: usize = 12;

#[derive(Debug, Clone)]
enum Step {
    Apply {
        name: usize,
        app: &'static str,
        value: u8,
    },
    Delete {
        name: usize,
    },
    PutRaw {
        name: usize,
        app: &'static str,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let app = prop_oneof![Just("web"), Just("db"), Just("")];
    let step = prop_oneof![
        4 => (0..4_usize, app.clone(), 0..3_u8).prop_map(|(name, app, value)| Step::Apply { name, app, value }),
        2 => (0..4_usize).prop_map(|name| Step::Delete { name }),
        1 => (0..4_usize, app).prop_map(|(name, app)| Step::PutRaw { name, app }),
    ];
    proptest::collection::vec(step, 1..40)
}

type State = BTreeMap<String, String>;

/// The selected objects at a version: names, and their text.
fn state(store: &Store, key: &ResourceKey, filter: &Filter, at: Option<u64>) -> State {
    let collection = store.collection(key).unwrap();
    let page = collection.page(&PageRequest {
        filter,
        at,
        from: "",
        limit: 0,
    });
    page.items
        .iter()
        .map(|item| {
            (
                item.name.clone(),
                String::from_utf8_lossy(&item.object).into_owned(),
            )
        })
        .collect()
}

/// Does to a state what a line of a watch says, and complains if it cannot be.
fn follow(state: &mut State, line: &str) {
    let event: Value = serde_json::from_str(line).unwrap();
    let object = line
        .split_once("\"object\":")
        .unwrap()
        .1
        .trim_end()
        .strip_suffix('}')
        .unwrap();
    let name = event["object"]["metadata"]["name"].as_str().unwrap().to_owned();
    match event["type"].as_str().unwrap() {
        "ADDED" => assert!(
            state.insert(name, object.to_owned()).is_none(),
            "added twice: {line}"
        ),
        "MODIFIED" => assert!(
            state.insert(name, object.to_owned()).is_some(),
            "never added: {line}"
        ),
        "DELETED" => assert!(state.remove(&name).is_some(), "not there: {line}"),
        other => panic!("unexpected {other}"),
    }
}

fn take(store: &mut Store, key: &ResourceKey, step: &Step) {
    let writing = Writing {
        now: UNIX_EPOCH,
        origin: Origin::Host,
    };
    let object = |name: &usize, app: &str, data: Value| {
        let name = format!("n{name}");
        json!({"metadata": {"name": name, "namespace": "shop", "labels": {"app": app}}, "data": data})
    };
    match step {
        Step::Apply { name, app, value } => {
            store
                .apply(
                    key,
                    object(name, app, json!({"value": value.to_string()})),
                    writing,
                )
                .unwrap();
        }
        Step::Delete { name } => {
            let name = format!("n{name}");
            let target = Target {
                key,
                namespace: "shop",
                name: &name,
                status: false,
            };
            // It may not be there, and then nothing happens.
            let _ = store.delete(target, &Preconditions::default(), writing);
        }
        Step::PutRaw { name, app } => {
            let text = object(name, app, json!({"raw": "1"})).to_string();
            store.put_raw(key, RawObject::new(text)).unwrap();
        }
    }
}

proptest! {
    #[test]
    fn a_watch_from_any_version_that_is_kept_leads_from_the_state_then_to_the_state_now(
        steps in steps(), selective in any::<bool>(), compaction in 0..40_usize,
    ) {
        let mut store = Store::new(built_in(), 1, HISTORY, 0);
        let key = store.named("configmaps").unwrap();
        let labels = LabelSelector::parse(if selective { "app in (web)" } else { "" }).unwrap();
        let filter = Filter { namespace: Some("shop".to_owned()), labels, ..Filter::default() };
        let mut seen = vec![(1, State::new())];
        for (index, step) in steps.iter().enumerate() {
            take(&mut store, &key, step);
            if index == compaction {
                store.compact();
            }
            seen.push((store.versions.current(), state(&store, &key, &filter, None)));
        }
        let now = state(&store, &key, &filter, None);
        let collection = store.collection(&key).unwrap();
        let oldest = store.versions.compacted().max(collection.trimmed());
        for (version, mut then) in seen.into_iter().filter(|(version, _)| *version >= oldest) {
            prop_assert_eq!(&state(&store, &key, &filter, Some(version)), &then);
            let mut position = version;
            // In batches of two, as a slow reader takes them.
            while position < store.versions.current() {
                match collection.backlog(position, store.versions.current(), &filter, 2) {
                    Backlog::Lines(lines, reached) => {
                        prop_assert!(reached > position);
                        position = reached;
                        for line in lines {
                            follow(&mut then, std::str::from_utf8(&line).unwrap());
                        }
                    }
                    Backlog::Lost => prop_assert!(false, "version {} is kept", version),
                }
            }
            prop_assert_eq!(&then, &now);
        }
    }

    #[test]
    fn pages_of_any_size_add_up_to_the_whole(steps in steps(), limit in 1..5_usize) {
        let mut store = Store::new(built_in(), 1, HISTORY, 0);
        let key = store.named("configmaps").unwrap();
        for step in &steps {
            take(&mut store, &key, step);
        }
        let filter = Filter::default();
        let collection = store.collection(&key).unwrap();
        let whole = collection.page(&PageRequest { filter: &filter, at: None, from: "", limit: 0 });
        let (mut from, mut names) = (String::new(), Vec::new());
        loop {
            let page = collection.page(&PageRequest { filter: &filter, at: None, from: &from, limit });
            prop_assert!(page.items.len() <= limit);
            names.extend(page.items.iter().map(|item| item.key()));
            prop_assert_eq!(names.len() + page.remaining, whole.items.len());
            match page.more_after {
                Some(last) => from = last + "\0",
                None => break,
            }
        }
        prop_assert_eq!(names, whole.items.iter().map(|item| item.key()).collect::<Vec<_>>());
    }
}
