//! The command line as a whole.

use clap::{CommandFactory, Parser};

use super::*;

fn parse(arguments: &[&str]) -> Result<Flags, clap::Error> {
    Flags::try_parse_from([&["krm-stream-demo"], arguments].concat())
}

#[test]
fn the_command_line_is_well_formed() {
    Flags::command().debug_assert();
}

#[test]
fn every_flag_has_an_environment_variable_of_the_same_name() {
    for argument in Flags::command().get_arguments() {
        let name = argument.get_long().unwrap();
        if matches!(name, "help" | "version") {
            continue;
        }
        let variable = format!("KRM_{}", name.replace('-', "_").to_uppercase());
        assert_eq!(
            argument.get_env().and_then(|name| name.to_str()),
            Some(variable.as_str()),
            "--{name}"
        );
    }
}

#[test]
fn without_flags_it_is_the_simulator_on_loopback() {
    let flags = parse(&[]).unwrap();
    assert!(flags.clusters.is_simulated());
    assert!(flags.server.is_loopback());
    assert_eq!(flags.scopes.projection, ["krm-full/v1", "krm-spec/v1"]);
}

#[test]
fn a_cluster_and_the_simulator_exclude_each_other() {
    assert!(parse(&["--kubeconfig", "k", "--simulator-objects", "5"]).is_err());
    assert!(parse(&["--in-cluster", "--simulator-listen", "127.0.0.1:0"]).is_err());
    assert!(parse(&["--in-cluster", "--context", "c"]).is_err());
    assert!(!parse(&["--kubeconfig", "k"]).unwrap().clusters.is_simulated());
    assert!(!parse(&["--target", "a=b"]).unwrap().clusters.is_simulated());
}

#[test]
fn ranges_are_checked() {
    for wrong in [
        ["--queue-depth", "0"],
        ["--watch-timeout", "0"],
        ["--watch-timeout", "1500ms"],
        ["--delivery-interval", "61s"],
        ["--simulator-tick", "1000"],
        ["--max-line-bytes", "1023"],
        ["--heartbeat-interval", "0"],
        ["--listen", "localhost"],
        ["--identity", "token"],
        ["--identity", "header:"],
        ["--trusted-proxy", "10.0.0.0/33"],
        ["--allow", "pods/log/x"],
        ["--allow-host", "http://example.com"],
    ] {
        assert!(parse(&wrong).is_err(), "{wrong:?}");
    }
}

/// The flags that take a duration.
fn durations() -> Vec<String> {
    let command = Flags::command();
    let arguments = command.get_arguments().filter(|argument| {
        let names = argument.get_value_names().unwrap_or_default();
        names.iter().any(|name| name == "DURATION")
    });
    arguments
        .map(|argument| format!("--{}", argument.get_long().unwrap()))
        .collect()
}

#[test]
fn every_duration_takes_a_unit_and_its_error_names_the_flag_and_an_example() {
    let flags = durations();
    assert!(flags.len() >= 15, "{flags:?}");
    for flag in flags {
        for value in ["2s", "3000ms", "1m"] {
            assert!(parse(&[&flag, value]).is_ok(), "{flag} {value}");
        }
        let told = parse(&[&flag, "soon"]).unwrap_err().to_string();
        assert!(told.contains(&flag) && told.contains("30s"), "{told}");
    }
    for flag in ["--simulator-tick", "--watch-timeout"] {
        assert!(durations().iter().any(|name| name == flag), "{flag}");
    }
    let timeout = |value| parse(&["--watch-timeout", value]).unwrap().upstream.watch_timeout;
    assert_eq!(timeout("90"), Some(Duration::from_secs(90)));
    assert_eq!(timeout("5m"), Some(Duration::from_mins(5)));
}

#[test]
fn every_variable_that_is_empty_is_as_one_that_is_not_set() {
    let command = Flags::command();
    let variables: Vec<&OsStr> = command.get_arguments().filter_map(clap::Arg::get_env).collect();
    assert!(variables.len() > 40, "{variables:?}");
    for empty in &variables {
        let read = unset(Flags::command(), |variable| variable == *empty);
        let left: Vec<&OsStr> = read.get_arguments().filter_map(clap::Arg::get_env).collect();
        let others: Vec<&OsStr> = variables
            .iter()
            .copied()
            .filter(|variable| variable != empty)
            .collect();
        assert_eq!(left, others, "{empty:?}");
    }
}

#[test]
fn an_upstream_that_acts_as_the_caller_needs_callers_with_names() {
    let acts = |arguments: &[&str]| parse(arguments).unwrap().access.acts_as_caller();
    assert!(acts(&["--sharing", "per-caller", "--identity", "header:X-User"]));
    assert!(acts(&["--sharing", "isolated", "--identity", "header:X-User"]));
    assert!(!acts(&["--sharing", "shared", "--identity", "header:X-User"]));
    assert!(!acts(&["--sharing", "isolated"]));
}

#[test]
fn figures_are_beside_the_page_on_loopback_alone() {
    let figures = |arguments: &[&str]| parse(arguments).unwrap().server.figures();
    let own = "192.0.2.7:9090";
    assert_eq!(figures(&[]), Figures::BesideThePage);
    assert_eq!(figures(&["--listen", "[::1]:80"]), Figures::BesideThePage);
    assert_eq!(figures(&["--listen", "0.0.0.0:80"]), Figures::Nowhere);
    assert_eq!(figures(&["--listen", "192.0.2.7:80"]), Figures::Nowhere);
    for listen in ["127.0.0.1:80", "0.0.0.0:80"] {
        let figures = figures(&["--listen", listen, "--admin-listen", own]);
        assert_eq!(figures, Figures::At(own.parse().unwrap()));
    }
}
