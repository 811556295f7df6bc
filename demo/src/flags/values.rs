//! Values of flags that need a parser of their own.

use std::net::SocketAddr;
use std::str::FromStr;

use krm_stream_protocol::{Scope, Target};

/// A target's name, and the context of the kubeconfig that it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TargetFlag {
    pub(crate) name: Target,
    pub(crate) context: String,
}

impl FromStr for TargetFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((name, context)) = text.split_once('=') else {
            return Err("write NAME=CONTEXT, for example staging=kind-staging".to_owned());
        };
        if name.is_empty() || context.is_empty() {
            return Err("neither the name nor the context may be empty".to_owned());
        }
        let name = Target::new(name);
        // A name that no request could ask for is a mistake here.
        Scope::builder("v1", "configmaps")
            .target(name.clone())
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Self {
            name,
            context: context.to_owned(),
        })
    }
}

/// An address to listen on.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| "write an IP address and a port, as 127.0.0.1:8080 or [::1]:0".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_name_and_a_context() {
        assert_eq!(
            "staging=kind-a=b".parse::<TargetFlag>().unwrap(),
            TargetFlag {
                name: Target::new("staging"),
                context: "kind-a=b".to_owned(),
            }
        );
        for wrong in ["staging", "=kind", "staging=", "Not A Name=kind"] {
            assert!(wrong.parse::<TargetFlag>().is_err(), "{wrong:?}");
        }
    }
}
