//! A request lost at every seam, before or after it is carried out; then the same call again.
#![allow(clippy::unwrap_used, reason = "words for tests")]

mod common;

use common::*;
use notation_provider::OpError;

/// More requests than any call makes.
const MOST: usize = 60;

/// Both faults at one seam.
fn at(seam: usize) -> [Fault; 2] {
    [Fault::Before(seam), Fault::After(seam)]
}

/// Code of its own, so that it must be uploaded.
fn code_of(fault: Fault) -> String {
    format!("{fault:?}").replace(['(', ')'], "-")
}

#[track_caller]
fn transient<T: std::fmt::Debug>(answer: &Result<T, OpError>) {
    assert!(
        matches!(answer, Err(OpError::Transient { .. })),
        "{answer:?}"
    );
}

#[tokio::test]
async fn a_create_is_finished_by_calling_again() {
    let lab = Lab::new().await;
    let mut seams = 0;
    for seam in 1..MOST {
        for fault in at(seam) {
            let api = worker("api")
                .saying(&code_of(fault))
                .with_secret("KEY", "one");
            let token = fresh();
            lab.lose(fault);
            let first = lab.create_with(&api, &token).await;
            if !lab.lost() {
                assert!(seams > 40, "{seams}");
                return;
            }
            seams += 1;
            transient(&first);
            let made = done(lab.create_with(&api, &token).await);
            assert_eq!(
                lab.everything().len(),
                6,
                "{fault:?}: {:?}",
                lab.everything()
            );
            assert_eq!(lab.read(&api).await.unwrap().object, made);
            done(lab.delete(&api).await);
            assert!(lab.everything().is_empty());
        }
    }
    panic!("a create that makes more than {MOST} requests");
}

#[tokio::test]
async fn a_create_that_is_given_up_can_be_removed_or_made_differently() {
    let lab = Lab::new().await;
    for seam in 1..MOST {
        let api = worker("api").saying(&code_of(Fault::After(seam)));
        lab.lose(Fault::After(seam));
        let _ = lab.create(&api).await;
        if !lab.lost() {
            break;
        }
        if seam % 2 == 0 {
            let gone = lab.delete(&api).await;
            assert!(matches!(gone, Ok(_) | Err(OpError::NotFound)), "{gone:?}");
            assert!(lab.everything().is_empty(), "{:?}", lab.everything());
        } else if let Err(error) = lab.create(&api.clone().saying("other")).await {
            // Whole already: ours, and to be recorded.
            assert!(
                matches!(&error, OpError::Exists { tags, .. } if tags["notation:resource"] == "api"),
                "{error:?}"
            );
            done(lab.update(&api.clone().saying("other")).await);
        }
        if seam % 2 == 1 {
            assert_eq!(lab.everything().len(), 6);
            done(lab.delete(&api).await);
        }
    }
}

#[tokio::test]
async fn an_update_is_finished_by_calling_again_or_by_another_one() {
    let lab = Lab::new().await;
    let auth = worker("auth");
    done(lab.create(&auth).await);
    let api = worker("api");
    done(lab.create(&api).await);
    let whole = lab.everything().len();
    let mut seams = 0;
    for seam in 1..MOST {
        for fault in at(seam) {
            let text = code_of(fault);
            let bound = api
                .clone()
                .saying(&text)
                .binding(&[&auth])
                .with_secret("KEY", &text);
            let token = fresh();
            lab.lose(fault);
            let first = lab.update_with(&bound, &token).await;
            if !lab.lost() {
                assert!(seams > 40, "{seams}");
                done(lab.update(&api).await);
                done(lab.delete(&auth).await);
                return;
            }
            seams += 1;
            transient(&first);
            done(lab.update_with(&bound, &token).await);
            assert_eq!(lab.everything().len(), whole, "{fault:?}");
            // Another write after a lost one must still let go of auth.
            lab.lose(fault);
            let _ = lab.update(&bound.clone().saying("lost")).await;
            let _ = lab.lost();
            done(lab.update(&api).await);
            assert_eq!(lab.everything().len(), whole, "{fault:?}");
        }
    }
    panic!("an update that makes more than {MOST} requests");
}

#[tokio::test]
async fn a_delete_is_finished_by_calling_again() {
    let lab = Lab::new().await;
    for seam in 1..MOST {
        for fault in at(seam) {
            let api = worker("api")
                .saying(&code_of(fault))
                .with_secret("KEY", "one");
            done(lab.create(&api).await);
            let token = fresh();
            lab.lose(fault);
            let first = lab.delete_with(&api, &token).await;
            if lab.lost() {
                transient(&first);
                let again = lab.delete_with(&api, &token).await;
                assert!(matches!(again, Ok(_) | Err(OpError::NotFound)), "{again:?}");
            }
            assert!(
                lab.everything().is_empty(),
                "{fault:?}: {:?}",
                lab.everything()
            );
        }
    }
}
