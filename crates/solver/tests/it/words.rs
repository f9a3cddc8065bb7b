//! Answers and explanations, as people read them.

use crate::world::answer;
use insta::assert_snapshot;

#[test]
fn a_new_package_comes_with_what_it_needs_in_the_highest_versions_that_fit() {
    assert_snapshot!(answer("
        app v1.0.0: provider >=v1.0.0, function v1
        provider v1.0.0
        provider v1.4.0: family >=v1.0.0
        provider v2.0.0-rc.1
        function v1.1.0
        function v1.2.0
        function v2.0.0
        family v1.0.0
        want app v1.0.0
    "), @r"
    install function v1.2.0  (app v1.0.0 wants v1)
    install family v1.0.0  (provider v1.4.0 wants >=v1.0.0)
    install provider v1.4.0  (app v1.0.0 wants >=v1.0.0)
    install app v1.0.0
    ");
}

#[test]
fn a_version_that_leads_nowhere_is_not_chosen() {
    assert_snapshot!(answer("
        app v1.0.0: provider >=v1.0.0, family v1.0.0
        provider v1.0.0
        provider v1.1.0: family >=v1.1.0
        family v1.0.0
        family v1.1.0
        want app v1.0.0
    "), @r"
    install family v1.0.0  (app v1.0.0 wants v1.0.0)
    install provider v1.0.0  (app v1.0.0 wants >=v1.0.0)
    install app v1.0.0
    ");
}

#[test]
fn what_is_installed_stays_as_long_as_it_suits_everybody() {
    assert_snapshot!(answer("
        app v1.0.0: provider >=v1.0.0
        provider v1.0.0
        provider v1.1.0
        installed provider v1.0.0 any
        want app v1.0.0
    "), @r"
    keep provider v1.0.0  (app v1.0.0 wants >=v1.0.0)
    install app v1.0.0
    ");
}

#[test]
fn what_must_move_goes_up_to_the_nearest_version() {
    assert_snapshot!(answer("
        app v1.0.0: provider >=v1.1.0
        provider v1.0.0
        provider v1.1.0
        provider v1.2.0
        installed provider v1.0.0 up
        want app v1.0.0
    "), @r"
    upgrade provider v1.0.0 -> v1.1.0  (app v1.0.0 wants >=v1.1.0)
    install app v1.0.0
    ");
}

#[test]
fn it_goes_down_to_the_nearest_version_when_it_may() {
    assert_snapshot!(answer("
        app v1.0.0: provider <v1.2.0
        provider v1.0.0
        provider v1.1.0
        provider v1.2.0
        installed provider v1.2.0 any
        want app v1.0.0
    "), @r"
    downgrade provider v1.2.0 -> v1.1.0  (app v1.0.0 wants <v1.2.0)
    install app v1.0.0
    ");
}

#[test]
fn the_fewest_packages_are_moved() {
    assert_snapshot!(answer("
        hub v1.0.0
        hub v2.0.0
        one v1.0.0: hub v1.0.0
        one v2.0.0: hub v2.0.0
        two v1.0.0: hub <=v2.0.0
        three v1.0.0: hub <=v2.0.0
        app v1.0.0: one >=v1.0.0, hub >=v1.0.0
        app v2.0.0: one v2.0.0
        installed hub v1.0.0 up
        installed one v1.0.0 up
        installed two v1.0.0 up
        installed three v1.0.0 up
        move app v1.0.0 to v2.0.0
    "), @r"
    upgrade hub v1.0.0 -> v2.0.0  (one v2.0.0 wants v2.0.0; three v1.0.0 wants <=v2.0.0; two v1.0.0 wants <=v2.0.0)
    upgrade one v1.0.0 -> v2.0.0  (app v2.0.0 wants v2.0.0)
    upgrade app v1.0.0 -> v2.0.0
    keep three v1.0.0
    keep two v1.0.0
    ");
}

#[test]
fn two_that_want_different_versions_are_told_so() {
    assert_snapshot!(answer("
        one v1.0.0: hub <v2.0.0
        two v1.0.0: hub >=v2.0.0
        hub v1.0.0
        hub v1.5.0
        hub v2.0.0
        installed one v1.0.0
        installed hub v1.5.0 any
        want two v1.0.0
    "), @r"
    keep hub v1.5.0  (one v1.0.0 wants <v2.0.0)
    keep one v1.0.0
    conflict: two
      two v1.0.0 needs hub >=v2.0.0
      one v1.0.0 needs hub <v2.0.0
      there is no version of hub that satisfies them all (there are v1.0.0, v1.5.0 and v2.0.0)
      hint: accept more versions in one of these, or remove a package; removing one deletes all objects of the kinds it brought
    ");
}

#[test]
fn a_conflict_deep_down_is_told_from_the_top() {
    assert_snapshot!(answer("
        app v1.0.0: middle >=v1.0.0
        middle v1.0.0: hub >=v2.0.0
        middle v1.1.0: hub >=v2.0.0
        middle v1.2.0: hub >=v2.1.0
        other v1.0.0: hub v1.0.0
        hub v1.0.0
        hub v2.0.0
        hub v2.1.0
        installed other v1.0.0
        installed hub v1.0.0 up
        want app v1.0.0
    "), @r"
    keep hub v1.0.0  (other v1.0.0 wants v1.0.0)
    keep other v1.0.0
    conflict: app
      app v1.0.0 needs middle >=v1.0.0
      middle v1.2.0 needs hub >=v2.1.0
      middle v1.0.0 and v1.1.0 need hub >=v2.0.0
      other v1.0.0 needs hub v1.0.0
      there is no version of hub that satisfies them all (there are v1.0.0, v2.0.0 and v2.1.0)
      hint: accept more versions in one of these, or remove a package; removing one deletes all objects of the kinds it brought
    ");
}

#[test]
fn what_is_held_is_said_to_be_held() {
    assert_snapshot!(answer("
        app v1.0.0: hub >=v2.0.0
        hub v1.0.0
        hub v2.0.0
        installed hub v1.0.0 held
        want app v1.0.0
    "), @r"
    keep hub v1.0.0
    conflict: app
      app v1.0.0 needs hub >=v2.0.0
      hub v1.0.0 is installed and must not be moved
      hint: move hub to a version that satisfies the others
    ");
}

#[test]
fn what_may_only_go_up_is_not_lowered() {
    assert_snapshot!(answer("
        app v1.0.0: hub <v2.0.0
        hub v1.0.0
        hub v2.0.0
        installed hub v2.0.0 up
        want app v1.0.0
    "), @r"
    keep hub v2.0.0
    conflict: app
      app v1.0.0 needs hub <v2.0.0
      hub v2.0.0 is installed and may only go up (there are v1.0.0 and v2.0.0)
      hint: move hub to a version that satisfies the others
    ");
}

#[test]
fn a_version_that_nobody_publishes_is_missed() {
    assert_snapshot!(answer("
        app v1.0.0: hub >=v3.0.0
        hub v1.0.0
        hub v2.0.0
        want app v1.0.0
    "), @r"
    conflict: app
      app v1.0.0 needs hub >=v3.0.0
      there is no version of hub like that (there are v1.0.0 and v2.0.0)
      hint: publish such a version of hub, or accept another
    ");
}

#[test]
fn tags_that_are_no_versions_are_pointed_at() {
    assert_snapshot!(answer("
        app v1.0.0: hub >=v1.0.0
        hub tag latest
        hub tag v1
        want app v1.0.0
    "), @r"
    conflict: app
      app v1.0.0 needs hub >=v1.0.0
      there is no version of hub like that; its tags are no versions: latest and v1
      hint: publish such a version of hub, or accept another
    ");
}

#[test]
fn a_repository_that_cannot_be_reached_is_named() {
    assert_snapshot!(answer("
        app v1.0.0: hub >=v1.0.0
        hub ? connection refused
        want app v1.0.0
    "), @r"
    conflict: app
      app v1.0.0 needs hub >=v1.0.0
      the versions of hub cannot be listed: connection refused
      hint: make sure that hub can be reached
    ");
}

#[test]
fn what_is_installed_does_not_need_its_repository() {
    assert_snapshot!(answer("
        app v1.0.0: hub >=v1.0.0
        hub v1.0.0
        hub ? connection refused
        installed hub v1.0.0 any
        want app v1.0.0
    "), @r"
    keep hub v1.0.0  (app v1.0.0 wants >=v1.0.0)
    install app v1.0.0
    ");
}

#[test]
fn a_package_that_cannot_be_read_blocks_nobody_else() {
    assert_snapshot!(answer("
        bad v1.0.0: invalid its dependency on hub has the version \"bad\" which is no constraint
        good v1.0.0: hub >=v1.0.0
        broken v1.0.0! package.yaml not found
        hub v1.0.0
        installed bad v1.0.0
        want good v1.0.0
        want broken v1.0.0
    "), @r#"
    keep bad v1.0.0
    install hub v1.0.0  (good v1.0.0 wants >=v1.0.0)
    install good v1.0.0
    conflict: bad
      bad v1.0.0 cannot be installed: its dependency on hub has the version "bad" which is no constraint
      hint: install another version, or ask its author
    conflict: broken
      broken v1.0.0 cannot be installed: package.yaml not found
      hint: install another version, or ask its author
    "#);
}

#[test]
fn a_version_that_cannot_be_read_is_passed_over() {
    assert_snapshot!(answer("
        app v1.0.0: hub >=v1.0.0
        hub v1.0.0
        hub v1.1.0! package.yaml not found
        want app v1.0.0
    "), @r"
    install hub v1.0.0  (app v1.0.0 wants >=v1.0.0)
    install app v1.0.0
    ");
}

#[test]
fn packages_in_a_circle_are_refused() {
    assert_snapshot!(answer("
        one v1.0.0: two >=v1.0.0
        two v1.0.0: three >=v1.0.0
        three v1.0.0: one >=v1.0.0
        good v1.0.0
        want one v1.0.0
        want good v1.0.0
    "), @r"
    install good v1.0.0
    conflict: one
      one v1.0.0 needs two >=v1.0.0
      two v1.0.0 needs three >=v1.0.0
      three v1.0.0 needs one >=v1.0.0
      packages must not need each other in a circle
      hint: remove one of these dependencies
    ");
}

#[test]
fn a_package_that_needs_itself_is_refused() {
    assert_snapshot!(answer("
        one v1.0.0: one >=v1.0.0
        want one v1.0.0
    "), @r"
    conflict: one
      one v1.0.0 needs one >=v1.0.0
      packages must not need each other in a circle
      hint: remove one of these dependencies
    ");
}

#[test]
fn a_circle_that_another_version_avoids_is_avoided() {
    assert_snapshot!(answer("
        one v1.0.0: two >=v1.0.0
        two v1.0.0
        two v1.1.0: one >=v1.0.0
        want one v1.0.0
    "), @r"
    install two v1.0.0  (one v1.0.0 wants >=v1.0.0)
    install one v1.0.0
    ");
}

#[test]
fn a_crd_has_one_owner() {
    assert_snapshot!(answer("
        one v1.0.0: brings buckets.example.org
        two v1.0.0: brings buckets.example.org
        installed one v1.0.0
        want two v1.0.0
    "), @r"
    keep one v1.0.0
    conflict: two
      two v1.0.0 brings the CRD buckets.example.org
      one v1.0.0 brings the CRD buckets.example.org
      only one package may own a CRD
      hint: move one of the packages to a version without it; removing one deletes all objects of the kinds it brought
    ");
}

#[test]
fn of_two_new_owners_one_wins() {
    assert_snapshot!(answer("
        one v1.0.0: brings buckets.example.org
        two v1.0.0: brings buckets.example.org
        want one v1.0.0
        want two v1.0.0
    "), @r"
    install one v1.0.0
    conflict: two
      two v1.0.0 brings the CRD buckets.example.org
      one v1.0.0 brings the CRD buckets.example.org
      only one package may own a CRD
      hint: move one of the packages to a version without it; removing one deletes all objects of the kinds it brought
    ");
}

#[test]
fn a_crd_that_is_needed_comes_from_whoever_has_it() {
    assert_snapshot!(answer("
        app v1.0.0: crd buckets.example.org
        one v1.0.0: brings buckets.example.org
        installed one v1.0.0
        want app v1.0.0
    "), @r"
    keep one v1.0.0  (app v1.0.0 wants buckets.example.org)
    install app v1.0.0
    ");
}

#[test]
fn a_crd_that_nobody_has_is_missed() {
    assert_snapshot!(answer("
        app v1.0.0: crd buckets.example.org
        want app v1.0.0
    "), @r"
    conflict: app
      app v1.0.0 needs the CRD buckets.example.org
      no package that is installed brings the CRD buckets.example.org
      hint: install a package that brings buckets.example.org
    ");
}

#[test]
fn a_package_of_another_kind_does_not_do() {
    assert_snapshot!(answer("
        app v1.0.0: hub >=v1.0.0 as Provider
        hub v1.0.0: kind Function
        want app v1.0.0
    "), @r"
    conflict: app
      app v1.0.0 needs hub >=v1.0.0 as a Provider
      hub is a Function
      hint: need it as a Function, or need another package
    ");
}

/// M8: the wrong kind is told before all other reasons that keep a package where it is.
#[test]
fn m8_one_of_another_kind_that_is_installed_by_name_is_told_by_its_kind() {
    assert_snapshot!(answer("
        app v1.0.0: hub >=v1.0.0 as Provider
        hub v1.0.0: kind Configuration
        installed hub v1.0.0 up
        want app v1.0.0
    "), @r"
    keep hub v1.0.0
    conflict: app
      app v1.0.0 needs hub >=v1.0.0 as a Provider
      hub is a Configuration
      hint: need it as a Configuration, or need another package
    ");
    // One that is of that kind in another version is told by its versions.
    assert_snapshot!(answer("
        app v1.0.0: hub >=v2.0.0 as Provider
        hub v1.0.0: kind Provider
        hub v2.0.0: kind Configuration
        installed hub v1.0.0 held
        want app v1.0.0
    "), @r"
    keep hub v1.0.0
    conflict: app
      app v1.0.0 needs hub >=v2.0.0 as a Provider
      there is no version of hub like that (there are v1.0.0 and v2.0.0)
      hint: publish such a version of hub, or accept another
    ");
}

#[test]
fn a_repository_with_nothing_in_it_is_told_from_one_without_such_a_version() {
    assert_snapshot!(answer("
        app v1.0.0: hub >=v1.0.0
        want app v1.0.0
    "), @r"
    conflict: app
      app v1.0.0 needs hub >=v1.0.0
      there is no version of hub: the repository is empty, does not exist or is not to be seen
      hint: check the name hub, or publish such a version of it
    ");
}

#[test]
fn a_digest_is_satisfied_by_exactly_those_bytes() {
    let digest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    let text = format!(
        "
        app v1.0.0: hub {digest}
        hub v1.0.0
        hub {digest}: base v1.0.0
        base v1.0.0
        want app v1.0.0
    "
    );
    assert_snapshot!(answer(&text), @r"
    install base v1.0.0  (hub sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa wants v1.0.0)
    install hub sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa  (app v1.0.0 wants sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa)
    install app v1.0.0
    ");
}

#[test]
fn bytes_that_somebody_chose_give_way_only_to_bytes_that_somebody_names() {
    let (one, two) = (format!("sha256:{}", "1".repeat(64)), format!("sha256:{}", "2".repeat(64)));
    let world = |wanted: &str| {
        answer(&format!(
            "
            app v1.0.0: hub {wanted}
            hub v1.0.0
            hub v2.0.0
            hub {one}
            hub {two}
            installed hub {one} bytes
            want app v1.0.0
        "
        ))
    };
    let short = |text: String| text.replace(&one, "sha256:1").replace(&two, "sha256:2");
    assert_snapshot!(short(world(">=v2.0.0")), @r"
    keep hub sha256:1
    conflict: app
      app v1.0.0 needs hub >=v2.0.0
      hub sha256:111111111111 is installed and must not be moved
      hint: move hub to a version that satisfies the others
    ");
    assert_snapshot!(short(world(&two)), @r"
    switch hub sha256:1 -> sha256:2  (app v1.0.0 wants sha256:2)
    install app v1.0.0
    ");
}

#[test]
fn a_channel_satisfies_no_range() {
    assert_snapshot!(answer("
        app v1.0.0: hub >=v1.0.0
        hub latest
        hub v1.0.0
        installed hub latest up
        want app v1.0.0
    "), @r"
    keep hub latest
    conflict: app
      app v1.0.0 needs hub >=v1.0.0
      hub latest is installed and may only go up (there are v1.0.0 and latest)
      hint: move hub to a version that satisfies the others
    ");
}

#[test]
fn pre_releases_are_for_those_who_name_them() {
    assert_snapshot!(answer("
        app v1.0.0: hub >=v1.0.0-0
        old v1.0.0: hub2 >=v1.0.0
        hub v1.0.0
        hub v1.1.0-rc.1
        hub2 v1.0.0-rc.1
        want app v1.0.0
        want old v1.0.0
    "), @r"
    install hub v1.1.0-rc.1  (app v1.0.0 wants >=v1.0.0-0)
    install app v1.0.0
    conflict: old
      old v1.0.0 needs hub2 >=v1.0.0
      there is no version of hub2 like that (there is only v1.0.0-rc.1)
      hint: pre-releases count where a constraint names one, as >=1.0.0-0 does
    ");
}

#[test]
fn the_best_of_a_range_is_the_highest() {
    assert_snapshot!(answer("
        hub v1.0.0
        hub v1.1.0
        hub v2.0.0
        want hub ^1.0.0
    "), @r"
    install hub v1.1.0
    ");
}

#[test]
fn of_two_tags_of_one_version_the_longer_is_taken() {
    assert_snapshot!(answer("
        hub v1.0.0
        hub v1
        want hub ^1.0.0
    "), @r"
    install hub v1.0.0
    ");
}

#[test]
fn a_range_with_nothing_in_it_is_refused() {
    assert_snapshot!(answer("
        hub v1.0.0
        want hub ^3.0.0
    "), @r"
    conflict: hub
      hub asks for hub ^3.0.0
      there is no such version (there is only v1.0.0)
      hint: ask for another version
    ");
}

#[test]
fn two_objects_for_one_package_are_told_apart() {
    assert_snapshot!(answer("
        hub v1.0.0
        app v1.0.0: hub >=v1.0.0
        installed hub v1.0.0
        installed hub v1.0.0 named hub-mirror
        want app v1.0.0
    "), @r"
    keep hub v1.0.0  (app v1.0.0 wants >=v1.0.0)
    install app v1.0.0
    conflict: hub-mirror
      hub and hub-mirror are both the package hub
      hint: delete hub-mirror, or let it name another package
    ");
}

#[test]
fn nobody_minds_what_a_package_needs_that_skips_it() {
    assert_snapshot!(answer("
        app v1.0.0: hub >=v1.0.0
        want app v1.0.0 skip
    "), @r"
    install app v1.0.0
    ");
}

#[test]
fn an_update_that_cannot_be_leaves_the_package_where_it_is() {
    assert_snapshot!(answer("
        app v1.0.0: hub v1.0.0
        app v2.0.0: hub v3.0.0
        hub v1.0.0
        installed hub v1.0.0 any
        move app v1.0.0 to v2.0.0
    "), @r"
    keep hub v1.0.0  (app v1.0.0 wants v1.0.0)
    keep app v1.0.0
    conflict: app
      app v2.0.0 needs hub v3.0.0
      there is no version of hub like that (there is only v1.0.0)
      hint: publish such a version of hub, or accept another
    ");
}

#[test]
fn a_package_that_is_proposed_for_a_crd_is_installed_in_its_best_version_that_brings_it() {
    assert_snapshot!(answer("
        app v1.0.0: crd buckets.example.org
        one v1.0.0: brings buckets.example.org
        one v2.0.0: brings buckets.example.org
        one v3.0.0
        crd buckets.example.org from one v1.0.0 v2.0.0
        want app v1.0.0
    "), @"
    install one v2.0.0  (app v1.0.0 wants buckets.example.org)
    install app v1.0.0
    ");
}

#[test]
fn a_crd_that_is_there_without_a_package_takes_none() {
    assert_snapshot!(answer("
        app v1.0.0: crd buckets.example.org
        crd buckets.example.org there
        want app v1.0.0
    "), @"install app v1.0.0");
}

#[test]
fn a_package_that_is_proposed_and_does_not_bring_the_crd_is_not_installed() {
    assert_snapshot!(answer("
        app v1.0.0: crd buckets.example.org
        one v1.0.0
        crd buckets.example.org from one v1.0.0
        want app v1.0.0
    "), @"
    conflict: app
      app v1.0.0 needs the CRD buckets.example.org
      one is said to bring the CRD buckets.example.org, and no version of it that can be read does
      hint: name the package that brings it as a dependency or in a pin, or have the catalog put right
    ");
}

#[test]
fn a_circle_may_go_through_a_crd() {
    assert_snapshot!(answer("
        app v1.0.0: crd buckets.example.org
        one v1.0.0: brings buckets.example.org, app *
        crd buckets.example.org from one v1.0.0
        want app v1.0.0
    "), @"
    conflict: app
      app v1.0.0 needs the CRD buckets.example.org
      one v1.0.0 needs app *
      packages must not need each other in a circle
      hint: remove one of these dependencies
    ");
}

#[test]
fn several_packages_may_answer_to_the_same_words() {
    assert_snapshot!(answer("
        app v1.0.0: crd *.example.org
        one v1.0.0: brings buckets.example.org, answers *.example.org
        two v1.0.0: brings queues.example.org, answers *.example.org
        installed one v1.0.0
        installed two v1.0.0
        want app v1.0.0
    "), @"
    keep one v1.0.0  (app v1.0.0 wants *.example.org)
    install app v1.0.0
    keep two v1.0.0
    ");
}

#[test]
fn a_conflict_over_a_crd_says_which_versions_bring_it() {
    assert_snapshot!(answer("
        app v1.0.0: crd buckets.example.org/v1
        old v1.0.0: one =v1.0.0
        one v1.0.0: brings buckets.example.org
        one v2.0.0: brings buckets.example.org, answers buckets.example.org/v1
        crd buckets.example.org/v1 from one v2.0.0
        installed old v1.0.0
        installed one v1.0.0 up
        want app v1.0.0
    "), @"
    keep one v1.0.0  (old v1.0.0 wants =v1.0.0)
    keep old v1.0.0
    conflict: app
      app v1.0.0 needs the CRD buckets.example.org/v1
      old v1.0.0 needs one =v1.0.0
      the CRD buckets.example.org/v1 comes with one v2.0.0
      no choice of versions suits them all
      hint: accept more versions in one of these, or remove a package; removing one deletes all objects of the kinds it brought
    ");
}
