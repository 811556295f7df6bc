//! The gateway on a real API server: what a consumer sees, compared with what kubectl prints.
//!
//! Needs a cluster, kubectl and the demo's binary; `cargo xtask e2e` provides them. It runs all of this, but for the tests
//! of the other sort of cluster, on one that serves streaming lists and on one that refuses them.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on says why and fails"
)]

#[path = "cluster/access.rs"]
mod access;
#[path = "cluster/api_server.rs"]
mod api_server;
#[path = "cluster/continuity.rs"]
mod continuity;
#[path = "cluster/control_plane.rs"]
mod control_plane;
#[path = "cluster/credentials.rs"]
mod credentials;
#[path = "cluster/declared.rs"]
mod declared;
#[path = "cluster/declared_replicas.rs"]
mod declared_replicas;
#[path = "cluster/declared_routine.rs"]
mod declared_routine;
#[path = "cluster/declared_troubles.rs"]
mod declared_troubles;
#[path = "cluster/definitions.rs"]
mod definitions;
#[path = "cluster/drains.rs"]
mod drains;
#[path = "cluster/expectation.rs"]
mod expectation;
#[path = "cluster/faults.rs"]
mod faults;
#[path = "cluster/gateway.rs"]
mod gateway;
#[path = "cluster/identity.rs"]
mod identity;
#[path = "../../crates/status/tests/status/kstatus.rs"]
mod kstatus;
#[path = "cluster/lifecycle.rs"]
mod lifecycle;
#[path = "cluster/link.rs"]
mod link;
#[path = "cluster/metrics.rs"]
mod metrics;
#[path = "cluster/objects.rs"]
mod objects;
#[path = "cluster/operating.rs"]
mod operating;
#[path = "cluster/projections.rs"]
mod projections;
#[path = "cluster/reach.rs"]
mod reach;
#[path = "cluster/refusing.rs"]
mod refusing;
#[path = "cluster/revocation.rs"]
mod revocation;
#[path = "cluster/secrets.rs"]
mod secrets;
#[path = "cluster/selectors.rs"]
mod selectors;
#[path = "cluster/sessions.rs"]
mod sessions;
#[path = "cluster/sizes.rs"]
mod sizes;
#[path = "cluster/tab.rs"]
mod tab;
#[path = "cluster/viewer.rs"]
mod viewer;
#[path = "cluster/wait.rs"]
mod wait;

use crate::api_server::ApiServer;

#[tokio::test]
#[ignore = "needs a cluster: run cargo xtask e2e"]
async fn a_snapshot_of_a_namespace_holds_what_is_there() {
    lifecycle::a_snapshot_holds_what_is_there(&ApiServer::of_this_run().await).await;
}

#[tokio::test]
#[ignore = "needs a cluster: run cargo xtask e2e"]
async fn what_is_added_modified_and_deleted_is_told_as_such() {
    lifecycle::what_is_added_modified_and_deleted_is_told_as_such(&ApiServer::of_this_run().await).await;
}

#[tokio::test]
#[ignore = "needs a cluster: run cargo xtask e2e"]
async fn an_object_deleted_and_recreated_under_one_name_is_another_object() {
    lifecycle::a_recreated_name_is_another_object(&ApiServer::of_this_run().await).await;
}

#[tokio::test]
#[ignore = "needs a cluster: run cargo xtask e2e"]
async fn one_named_object_is_a_scope_present_or_absent() {
    lifecycle::one_named_object_is_a_scope_present_or_absent(&ApiServer::of_this_run().await).await;
}

#[tokio::test]
#[ignore = "needs a cluster: run cargo xtask e2e"]
async fn a_namespace_emptied_at_once_is_told_object_by_object() {
    lifecycle::an_emptied_namespace_is_told_object_by_object(&ApiServer::of_this_run().await).await;
}

#[tokio::test]
#[ignore = "needs a cluster: run cargo xtask e2e"]
async fn an_object_leaves_a_label_selector_and_enters_it_again() {
    selectors::an_object_leaves_and_enters_a_selector(&ApiServer::of_this_run().await).await;
}

#[tokio::test]
#[ignore = "needs a cluster: run cargo xtask e2e"]
async fn a_cluster_scoped_kind_is_followed() {
    reach::a_cluster_scoped_kind_is_followed(&ApiServer::of_this_run().await).await;
}

#[tokio::test]
#[ignore = "needs a cluster: run cargo xtask e2e"]
async fn all_namespaces_are_refused_unless_the_policy_allows_them() {
    reach::all_namespaces_are_for_the_policy_to_allow(&ApiServer::of_this_run().await).await;
}

#[tokio::test]
#[ignore = "needs a cluster: run cargo xtask e2e"]
async fn a_caller_without_a_role_is_forbidden_by_an_access_review() {
    reach::a_caller_without_a_role_is_forbidden_by_review(&ApiServer::of_this_run().await).await;
}

#[tokio::test]
#[ignore = "needs a cluster: run cargo xtask e2e"]
async fn a_caller_without_a_role_is_forbidden_by_the_api_server_where_the_upstream_acts_as_the_caller() {
    reach::a_caller_without_a_role_is_forbidden_by_the_api_server(&ApiServer::of_this_run().await).await;
}

#[tokio::test]
#[ignore = "needs a cluster: run cargo xtask e2e"]
async fn a_secret_is_withheld_and_its_rotation_is_seen() {
    secrets::a_secret_is_withheld_and_its_rotation_is_seen(&ApiServer::of_this_run().await).await;
}

#[tokio::test]
#[ignore = "needs a cluster: run cargo xtask e2e"]
async fn status_only_churn_is_silent_under_the_spec_projection() {
    projections::status_churn_is_silent_where_status_is_not_shown(&ApiServer::of_this_run().await).await;
}

#[tokio::test]
#[ignore = "needs a cluster: run cargo xtask e2e"]
async fn a_custom_resource_with_unknown_fields_is_carried_byte_for_byte() {
    projections::a_custom_resource_is_carried_byte_for_byte(&ApiServer::of_this_run().await).await;
}

#[tokio::test]
#[ignore = "needs a cluster: run cargo xtask e2e"]
async fn an_object_of_a_megabyte_is_carried() {
    sizes::an_object_of_a_megabyte_is_carried(&ApiServer::of_this_run().await).await;
}

#[tokio::test]
#[ignore = "needs a cluster: run cargo xtask e2e"]
async fn two_thousand_objects_are_followed_in_one_scope() {
    sizes::two_thousand_objects_are_followed_in_one_scope(&ApiServer::of_this_run().await).await;
}

#[tokio::test]
#[ignore = "needs a cluster: run cargo xtask e2e"]
async fn two_subscribers_of_one_scope_are_one_upstream_watch() {
    sessions::two_subscribers_of_a_scope_are_one_watch(&ApiServer::of_this_run().await).await;
}

#[tokio::test]
#[ignore = "needs a cluster: run cargo xtask e2e"]
async fn routine_ends_of_watches_reset_nobody_and_lose_nothing() {
    sessions::routine_ends_of_watches_are_unseen(&ApiServer::of_this_run().await).await;
}

#[tokio::test]
#[ignore = "needs a cluster: run cargo xtask e2e"]
async fn a_role_taken_away_from_a_caller_under_an_open_watch_ends_the_stream_in_kubernetes_words() {
    access::a_role_taken_away_from_a_caller_ends_the_stream(&ApiServer::of_this_run().await).await;
}

#[tokio::test]
#[ignore = "needs a cluster: run cargo xtask e2e"]
async fn a_role_taken_away_is_found_by_the_next_review() {
    access::a_role_taken_away_is_found_by_the_next_review(&ApiServer::of_this_run().await).await;
}

#[tokio::test]
#[ignore = "needs a cluster: run cargo xtask e2e"]
async fn a_role_taken_away_from_the_service_identity_ends_the_stream_in_words_that_do_not_name_it() {
    access::a_role_taken_away_from_the_service_identity_is_not_told_as_the_callers(
        &ApiServer::of_this_run().await,
    )
    .await;
}

#[tokio::test]
#[ignore = "needs a cluster: run cargo xtask e2e"]
async fn a_role_taken_away_from_two_hundred_callers_ends_their_streams_within_the_interval_or_at_a_recheck() {
    revocation::a_role_taken_away_ends_delivery_within_its_budget(&ApiServer::of_this_run().await).await;
}

#[tokio::test]
#[ignore = "needs a cluster: run cargo xtask e2e"]
async fn impersonated_callers_with_different_rights_see_only_what_is_theirs() {
    access::callers_with_different_rights_see_only_what_is_theirs(&ApiServer::of_this_run().await).await;
}

#[tokio::test]
#[ignore = "needs a cluster: run cargo xtask e2e"]
async fn a_definition_deleted_under_an_open_scope_ends_the_stream() {
    definitions::a_definition_deleted_under_an_open_scope_ends_the_stream(&ApiServer::of_this_run().await)
        .await;
}

#[tokio::test]
#[ignore = "needs a cluster: run cargo xtask e2e"]
async fn the_manifests_of_the_operating_kit_are_accepted() {
    operating::the_manifests_are_accepted(&ApiServer::of_this_run().await).await;
}

#[tokio::test]
#[ignore = "needs a cluster: run cargo xtask e2e"]
async fn the_gateway_runs_with_the_rights_that_the_operating_kit_grants() {
    operating::the_gateway_runs_with_the_rights_of_the_manifests(&ApiServer::of_this_run().await).await;
}

/// What only a cluster that refuses streaming lists can show.
mod without_streaming_lists {
    use super::{ApiServer, declared_troubles, refusing};

    #[tokio::test]
    #[ignore = "needs a cluster: run cargo xtask e2e"]
    async fn a_refused_streaming_list_is_not_asked_for_again() {
        refusing::refusals_are_remembered(&ApiServer::of_this_run().await).await;
    }

    #[tokio::test]
    #[ignore = "needs a cluster: run cargo xtask e2e"]
    async fn who_may_list_and_not_watch_what_is_declared_is_warned_of_once() {
        declared_troubles::a_right_to_list_alone_is_warned_of_once(&ApiServer::of_this_run().await).await;
    }
}

/// What is not repeated on a cluster that refuses streaming lists.
mod with_streaming_lists {
    use super::{
        ApiServer, continuity, credentials, declared_replicas, declared_routine, declared_troubles, drains,
        faults,
    };

    #[tokio::test]
    #[ignore = "needs a cluster: run cargo xtask e2e"]
    async fn a_declared_stream_is_ready_and_stays_so_while_watches_end_and_begin_again() {
        declared_routine::ready_holds_while_watches_end_and_begin_again(&ApiServer::of_this_run().await)
            .await;
    }

    #[tokio::test]
    #[ignore = "needs a cluster: run cargo xtask e2e"]
    async fn what_holds_a_declared_stream_up_is_told_in_words() {
        declared_troubles::what_holds_a_stream_up_is_told_in_words(&ApiServer::of_this_run().await).await;
    }

    #[tokio::test]
    #[ignore = "needs a cluster: run cargo xtask e2e"]
    async fn an_expired_version_of_a_declared_stream_is_replayed_without_a_warning() {
        declared_troubles::an_expired_version_is_replayed_without_a_warning().await;
    }

    #[tokio::test]
    #[ignore = "needs a cluster: run cargo xtask e2e"]
    async fn of_two_replicas_the_holder_of_the_lease_alone_publishes() {
        declared_replicas::the_holder_of_the_lease_alone_publishes(&ApiServer::of_this_run().await).await;
    }

    #[tokio::test]
    #[ignore = "needs a cluster: run cargo xtask e2e"]
    async fn five_hundred_streams_of_a_replica_that_ends_come_back_to_another() {
        drains::five_hundred_streams_come_back_to_another_replica(&ApiServer::of_this_run().await).await;
    }

    #[tokio::test]
    #[ignore = "needs a cluster: run cargo xtask e2e"]
    async fn twenty_routine_ends_of_watches_lose_nothing_and_double_nothing_with_and_without_writes() {
        continuity::many_routine_ends_lose_nothing_and_double_nothing(&ApiServer::of_this_run().await).await;
    }

    #[tokio::test]
    #[ignore = "needs a cluster: run cargo xtask e2e"]
    async fn a_rotated_token_is_unseen_and_a_revoked_one_is_told() {
        credentials::a_rotated_token_is_unseen_and_a_revoked_one_is_told(&ApiServer::of_this_run().await)
            .await;
    }

    #[tokio::test]
    #[ignore = "needs a cluster: run cargo xtask e2e"]
    async fn a_cut_with_a_compaction_and_a_restart_is_one_new_cycle_and_less_is_less() {
        faults::lost_continuity_is_one_new_cycle_and_nothing_else_is().await;
    }

    #[tokio::test]
    #[ignore = "needs a cluster: run cargo xtask e2e"]
    async fn an_api_server_that_is_killed_for_five_seconds_and_for_a_minute_is_awaited_with_patience() {
        faults::an_api_server_that_is_gone_for_a_while_is_awaited_with_patience().await;
    }

    #[tokio::test]
    #[ignore = "needs a cluster: run cargo xtask e2e"]
    async fn an_api_server_that_freezes_is_given_up_and_resumed() {
        faults::an_api_server_that_freezes_is_given_up_and_resumed().await;
    }
}
