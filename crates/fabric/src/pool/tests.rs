use super::*;
use crate::finding::Severity;

const GIB: u64 = 1 << 30;

fn pv(path: &str, group: &str, gib: u64) -> Pv {
    Pv {
        path: path.to_owned(),
        group: group.to_owned(),
        bytes: gib * GIB,
        away: false,
        depth: Some(64),
    }
}

/// One with which nothing is wrong.
fn good() -> Pool {
    let of = |group: &'static str| (0..16).map(move |at| pv(&format!("/{group}/{at}"), group, 100));
    Pool {
        name: "p0".to_owned(),
        closed: None,
        pvs: of("Default").chain(of("Mirror")).collect(),
        size: 1600 * GIB,
        free: 900 * GIB,
        allocated: 3000 * GIB,
        warn_percent: 80,
        lus: 100,
        one_disk: None,
        files: Vec::new(),
    }
}

/// The rules that a pool breaks, with the numbers.
fn broken(pool: &Pool) -> Vec<(Rule, String)> {
    let found = check(std::slice::from_ref(pool));
    assert!(found.iter().all(|one| one.place == "p0"));
    found.into_iter().map(|one| (one.rule, one.arithmetic)).collect()
}

/// The good one, changed.
fn but(change: impl FnOnce(&mut Pool)) -> Vec<(Rule, String)> {
    let mut pool = good();
    change(&mut pool);
    broken(&pool)
}

fn rules(found: &[(Rule, String)]) -> Vec<Rule> {
    found.iter().map(|(rule, _)| *rule).collect()
}

#[test]
fn each_rule_speaks_where_it_is_broken_and_nowhere_else() {
    assert_eq!(broken(&good()), []);
    let closed = but(|pool| (pool.closed, pool.free) = (Some("a PV is missing".to_owned()), 0));
    assert_eq!(rules(&closed), [Rule::NotOpen], "nothing else is known of it");
    assert_eq!(rules(&but(|pool| pool.pvs[3].away = true)), [Rule::PvAway]);
    let both = |pool: &mut Pool| pool.one_disk = Some(("/a".to_owned(), "/b".to_owned()));
    assert_eq!(rules(&but(both)), [Rule::OneDisk]);
    let sparse = |free| {
        move |pool: &mut Pool| {
            pool.files = vec![Files { path: "/a".to_owned(), missing: 5 * GIB, free }];
        }
    };
    assert_eq!(but(sparse(5 * GIB)), []);
    let told = "5GiB are not written yet, 4GiB are free".to_owned();
    assert_eq!(but(sparse(4 * GIB)), [(Rule::FilesWithoutSpace, told)]);
}

#[test]
fn what_is_taken_and_promised_is_held_against_the_size() {
    let full = but(|pool| (pool.free, pool.allocated) = (320 * GIB, 0));
    assert_eq!(rules(&full), [Rule::Full]);
    assert!(
        full[0].1.ends_with("- 320GiB free) / 1600GiB = 80 %, warn_percent is 80 %"),
        "{full:?}"
    );
    assert_eq!(but(|pool| (pool.free, pool.allocated) = (321 * GIB, 0)), []);
    // Twice what there is, with less than half of it free; 1.5 times with less than a quarter.
    let promised = |free, allocated| {
        rules(&but(move |pool: &mut Pool| {
            (pool.warn_percent, pool.free, pool.allocated) = (100, free * GIB, allocated * GIB);
        }))
    };
    assert_eq!(promised(800, 3200), []);
    assert_eq!(promised(799, 3200), [Rule::Overcommit]);
    assert_eq!(promised(799, 3199), []);
    assert_eq!(promised(399, 2400), [Rule::Overcommit]);
    assert_eq!(promised(400, 2400), []);
}

#[test]
fn failure_groups_and_pvs_are_held_against_each_other() {
    let less = but(|pool| {
        pool.pvs.pop();
    });
    let told = "1600GiB - 1500GiB = 100GiB that nothing can use".to_owned();
    assert_eq!(less, [(Rule::UnequalGroups, told)]);
    let odd = but(|pool| (pool.pvs[0].bytes, pool.pvs[16].bytes) = (89 * GIB, 89 * GIB));
    assert_eq!(rules(&odd), [Rule::UnequalPvs, Rule::UnequalPvs]);
    assert_eq!(odd[0].1, "89GiB / 100GiB = 89 %, at least 90 % is equal");
    assert_eq!(but(|pool| (pool.pvs[0].bytes, pool.pvs[16].bytes) = (90 * GIB, 90 * GIB)), []);
    let one = but(|pool| {
        pool.pvs.truncate(17);
        pool.pvs[16].bytes = 1600 * GIB;
        pool.lus = 1;
    });
    assert_eq!(rules(&one), [Rule::OnePvOfGroup]);
}

#[test]
fn pvs_are_counted_by_their_lus_and_their_size() {
    let alone = |count: usize, lus| {
        but(move |pool: &mut Pool| {
            pool.pvs.truncate(count);
            pool.lus = lus;
            pool.pvs.iter_mut().for_each(|pv| pv.depth = None);
        })
    };
    assert_eq!(rules(&alone(1, 0)), [Rule::OnePv]);
    assert_eq!(alone(8, 9), [(Rule::FewPvs, "8 PVs for 9 LUs; 16 are advised".to_owned())]);
    assert_eq!(alone(8, 8), []);
    assert_eq!(alone(9, 100), []);
    // 16 PVs of 4 TiB would be 512 by their size.
    let large = |tib: u64| {
        but(move |pool: &mut Pool| pool.pvs.iter_mut().for_each(|pv| pv.bytes = tib << 40))
    };
    let few = large(4);
    assert_eq!(rules(&few), [Rule::FewPvs]);
    assert!(few[0].1.contains("512 are advised: 64TiB x 8 for each TiB"), "{few:?}");
    // 8 TiB ask for 64, of which 16 are a quarter.
    assert_eq!(but(|pool| pool.pvs.iter_mut().for_each(|pv| pv.bytes = 512 * GIB)), []);
}

#[test]
fn depths_of_lus_and_pvs_are_multiplied() {
    let with = |depth: Option<u64>, lus| {
        but(move |pool: &mut Pool| {
            pool.lus = lus;
            pool.pvs.iter_mut().for_each(|pv| pv.depth = depth);
        })
    };
    let few = with(Some(32), 129);
    let told = "129 LUs with clients x 8 = 1032; 32 PVs x 32 = 1024".to_owned();
    assert_eq!(few, [(Rule::FewRequests, told)]);
    assert_eq!(with(Some(32), 128), []);
    assert_eq!(with(None, 10_000), [], "what is not known breaks no rule");
    let shallow = but(|pool| pool.pvs[5].depth = Some(3));
    let told = "it takes 3 at a time; 16 or more are advised".to_owned();
    assert_eq!(shallow, [(Rule::ShallowPv, told)]);
}

#[test]
fn the_worst_comes_first_and_words_are_unique() {
    let found = but(|pool| {
        (pool.free, pool.pvs[0].depth) = (0, Some(1));
        pool.pvs[1].away = true;
    });
    let severities: Vec<Severity> = found.iter().map(|(rule, _)| rule.severity()).collect();
    assert!(severities.is_sorted(), "{found:?}");
    let words: BTreeSet<&str> = Rule::ALL.iter().map(|rule| rule.word()).collect();
    assert_eq!(words.len(), Rule::ALL.len());
}
