//! The seam that takes raw causes, which browsers never see.

use std::error::Error;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::Scope;

/// Receives what a browser must not see: addresses, URLs, upstream texts. For an operator's log.
pub trait Diagnostics: Send + Sync {
    /// Takes one report. Must not block.
    fn report(&self, diagnostic: &Diagnostic<'_>);
}

/// Diagnostics that may be absent, and whose panic harms nobody.
#[derive(Clone, Default)]
pub struct Diagnosing(Option<Arc<dyn Diagnostics>>);

impl Diagnosing {
    /// Tells `diagnostics`.
    pub fn with(diagnostics: Arc<dyn Diagnostics>) -> Self {
        Self(Some(diagnostics))
    }

    /// Passes one report on. A panic of the receiver ends here.
    pub fn report(&self, operation: &'static str, scope: Option<&Scope>, cause: &(dyn Error + 'static)) {
        if let Some(diagnostics) = &self.0 {
            let diagnostic = Diagnostic {
                operation,
                scope,
                cause,
            };
            let _ = catch_unwind(AssertUnwindSafe(|| diagnostics.report(&diagnostic)));
        }
    }
}

impl fmt::Debug for Diagnosing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Diagnosing").field(&self.0.is_some()).finish()
    }
}

/// One raw cause, and where it arose.
#[derive(Clone, Copy)]
pub struct Diagnostic<'a> {
    /// What was being done, in a few fixed words.
    pub operation: &'static str,
    /// The scope that it concerns, if any.
    pub scope: Option<&'a Scope>,
    /// The cause. It holds no object content and no credential.
    pub cause: &'a (dyn Error + 'static),
}

impl fmt::Debug for Diagnostic<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Diagnostic")
            .field("operation", &self.operation)
            .field("cause", &self.cause.to_string())
            .finish_non_exhaustive()
    }
}
