//! Who may do what: bearer tokens, impersonation, and simple rules in the place of RBAC.
//!
//! Without tokens everybody is `system:anonymous`; without rules everybody may do everything. With tokens a request
//! needs a known one (401 otherwise); with rules it needs a rule that allows it (403 otherwise).

mod identity;
mod rule;

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use http::{HeaderMap, header};

pub use identity::User;
pub use rule::Rule;

use identity::impersonated;
pub(crate) use rule::{Attributes, Decision};

use crate::status::Status;

/// The tokens and rules of a simulator; they may change at any time and count from the next request on.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use krm_stream_simulator::{Rule, Simulator, User};
///
/// let simulator = Simulator::start().await?;
/// let access = simulator.access();
/// access.add_token("viewer-token", User::new("viewer"));
/// access.add_rule(Rule::allow().user("viewer").verbs(["list", "watch"]).resource("", "configmaps").namespace("shop"));
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
#[derive(Debug, Default)]
pub struct Access {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    tokens: BTreeMap<String, User>,
    rules: Vec<Rule>,
    anonymous: Option<bool>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Tokens are credentials, in a simulator too.
        formatter
            .debug_struct("State")
            .field("tokens", &self.tokens.len())
            .field("rules", &self.rules)
            .field("anonymous", &self.anonymous)
            .finish()
    }
}

impl Access {
    /// Lets `token` stand for `user`; in the place of whom it stood for before.
    pub fn add_token(&self, token: impl Into<String>, user: User) {
        self.state().tokens.insert(token.into(), user);
    }

    /// Forgets a token: requests with it are answered with 401. Returns whether it was known.
    pub fn remove_token(&self, token: &str) -> bool {
        self.state().tokens.remove(token).is_some()
    }

    /// Adds a rule.
    pub fn add_rule(&self, rule: Rule) {
        self.state().rules.push(rule);
    }

    /// Puts these rules in the place of all others. With none, everything is allowed; to allow nothing, keep one that
    /// matches nobody.
    pub fn set_rules(&self, rules: impl IntoIterator<Item = Rule>) {
        self.state().rules = rules.into_iter().collect();
    }

    /// Removes the rules that equal this one. Returns how many.
    pub fn remove_rule(&self, rule: &Rule) -> usize {
        let mut state = self.state();
        let before = state.rules.len();
        state.rules.retain(|kept| kept != rule);
        before - state.rules.len()
    }

    /// Whether a request without a token is taken as `system:anonymous`. Unless set, it is as long as there are no tokens.
    pub fn allow_anonymous(&self, allowed: bool) {
        self.state().anonymous = Some(allowed);
    }

    /// Whether a user may do something.
    pub(crate) fn decide(&self, user: &User, attributes: &Attributes) -> Decision {
        let state = self.state();
        if state.rules.is_empty() {
            return Decision::Allowed;
        }
        rule::decide(&state.rules, user, attributes)
    }

    /// Who sends a request, impersonation included.
    pub(crate) fn authenticate(&self, headers: &HeaderMap) -> Result<User, Status> {
        let caller = self.caller(headers)?;
        let Some(wanted) = impersonated(headers)? else {
            return Ok(caller);
        };
        for attributes in &wanted.checks {
            match self.decide(&caller, attributes) {
                Decision::Allowed => {}
                Decision::Denied | Decision::NoOpinion => return Err(attributes.forbidden(&caller)),
            }
        }
        Ok(wanted.user)
    }

    fn caller(&self, headers: &HeaderMap) -> Result<User, Status> {
        let state = self.state();
        let bearer = headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| {
                value
                    .strip_prefix("Bearer ")
                    .or_else(|| value.strip_prefix("bearer "))
            })
            .map(str::trim);
        match bearer {
            Some(token) if !state.tokens.is_empty() => state
                .tokens
                .get(token)
                .cloned()
                .map(User::authenticated)
                .ok_or_else(Status::unauthorized),
            Some(_) => Ok(User::anonymous()),
            None if state.anonymous.unwrap_or(state.tokens.is_empty()) => Ok(User::anonymous()),
            None => Err(Status::unauthorized()),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
