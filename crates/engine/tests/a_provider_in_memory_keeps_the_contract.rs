//! The tests' own cloud is a provider like any other.
#![allow(clippy::unwrap_used, reason = "its helpers are test code")]

mod support;

use notation_model::{Owner, Params};
use notation_provider::contract::{self, Sample};
use support::{Cloud, program::text, shop};

fn owner(resource: &str) -> Owner {
    Owner {
        deployment: shop(),
        resource: resource.parse().unwrap(),
        generation: 0,
    }
}

#[tokio::test]
async fn the_cloud_in_memory_and_the_one_in_a_folder_keep_the_contract() {
    let samples: Vec<Sample> = ["sim/Worker", "sim/Thing", "sim/Frozen"]
        .map(|ty| {
            let field = if ty == "sim/Worker" { "code" } else { "value" };
            let params =
                |value: &str| Params::from([("Name", text("shop-dev-x")), (field, text(value))]);
            let updated = (ty != "sim/Frozen").then(|| params("two"));
            Sample::new(
                ty.parse().unwrap(),
                params("one"),
                updated,
                [owner("x"), owner("y")],
            )
        })
        .into();
    let sleep = |duration| -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(duration))
    };
    contract::run(&Cloud::new(), &samples, &sleep).await;
    let dir = tempfile::tempdir().unwrap();
    let folder = notation_provider_sim::SimProvider::open(dir.path());
    contract::run(&folder, &samples, &sleep).await;
}
