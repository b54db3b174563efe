//! The tests' own cloud is a provider like any other.
#![allow(clippy::unwrap_used, reason = "its helpers are test code")]

mod support;

use notation_model::{Map, Owner, Params, Value};
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
    let named =
        |field: &str, value: Value| Params::from([("Name", text("shop-dev-x")), (field, value)]);
    let kept = |name: &str| Value::Map(Map::from([("type", text("kv")), ("name", text(name))]));
    let mut bound = named("code", text("two"));
    bound.insert("bindings", Value::List(vec![kept("one"), kept("two")]));
    let samples: Vec<Sample> = [
        ("sim/Worker", named("code", text("one")), Some(bound)),
        (
            "sim/Thing",
            named("value", text("one")),
            Some(named("note", text("instead"))),
        ),
        ("sim/Frozen", named("value", text("one")), None),
        ("sim/Blind", Params::from([("value", text("one"))]), None),
    ]
    .map(|(ty, created, updated)| {
        let owners = [owner("x"), owner("y")];
        Sample::new(ty.parse().unwrap(), created, updated, owners)
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
