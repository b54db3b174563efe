//! The names that the editor refuses are the ones that are refused when reading the project: one
//! list drives this test and the compiler's.

use notation_model::{AppName, EntryName, StageName};
use serde_json::Value;

#[test]
fn with_the_types_of_the_editor() {
    let list: Vec<Value> =
        serde_json::from_str(include_str!("../../../../sdk/tests/names.json")).unwrap();
    assert!(list.len() > 30);
    for each in &list {
        let name = each["name"].as_str().unwrap();
        let good = match each["kind"].as_str().unwrap() {
            "app" => name.parse::<AppName>().is_ok(),
            "entry" => name.parse::<EntryName>().is_ok(),
            "stage" => name.parse::<StageName>().is_ok(),
            other => panic!("{other}"),
        };
        assert_eq!(Some(good), each["good"].as_bool(), "{each}");
    }
}
