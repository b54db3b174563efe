//! Maps by name: small, in key order, cheap to clone.

use std::{collections::BTreeMap, fmt, mem, ops::Index};

use ecow::EcoVec;

use crate::Text;

/// A map from names to values, ordered by name: parameters, outputs, members of a value.
///
/// Most have a handful of members and a deployment has them by the hundred thousand, so it is one
/// allocation of just that size, none when empty. Clones share it until one of them is changed:
/// what is applied, recorded and read again is mostly the same. Reads and changes like the maps
/// of the standard library.
#[derive(Clone)]
pub struct Map<V>(EcoVec<(Text, V)>);

impl<V> Map<V> {
    /// Without members.
    pub const fn new() -> Map<V> {
        Map(EcoVec::new())
    }

    fn find(&self, key: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(name, _)| name.as_str().cmp(key))
    }

    /// How many members.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True without members.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of this name.
    pub fn get(&self, key: &str) -> Option<&V> {
        let place = self.find(key).ok()?;
        Some(&self.0[place].1)
    }

    /// Whether there is a member of this name.
    pub fn contains_key(&self, key: &str) -> bool {
        self.find(key).is_ok()
    }

    /// The members, in key order.
    pub fn iter(&self) -> Iter<'_, V> {
        self.0.iter().map(|(key, value)| (key, value))
    }

    /// The names, in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &Text> + Clone {
        self.0.iter().map(|(key, _)| key)
    }

    /// The values, in key order.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> + Clone {
        self.0.iter().map(|(_, value)| value)
    }

    /// Takes all members away.
    pub fn clear(&mut self) {
        self.0 = EcoVec::new();
    }
}

/// The members of a map, in key order.
pub type Iter<'a, V> =
    std::iter::Map<std::slice::Iter<'a, (Text, V)>, fn(&'a (Text, V)) -> (&'a Text, &'a V)>;

/// Whoever changes a shared map gets a copy of its own first.
impl<V: Clone> Map<V> {
    /// The value of this name, to be changed.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut V> {
        let place = self.find(key).ok()?;
        Some(&mut self.0.make_mut()[place].1)
    }

    /// Sets a member; returns what it was.
    pub fn insert(&mut self, key: impl Into<Text>, value: V) -> Option<V> {
        let key = key.into();
        match self.find(&key) {
            Ok(place) => Some(mem::replace(&mut self.0.make_mut()[place].1, value)),
            Err(place) => {
                self.0.insert(place, (key, value));
                None
            }
        }
    }

    /// Takes a member away.
    pub fn remove(&mut self, key: &str) -> Option<V> {
        let place = self.find(key).ok()?;
        Some(self.0.remove(place).1)
    }

    /// Keeps the members that are wanted.
    pub fn retain(&mut self, mut wanted: impl FnMut(&Text, &mut V) -> bool) {
        self.0.retain(|(key, value)| wanted(key, value));
    }

    /// A member that may be there.
    pub fn entry(&mut self, key: impl Into<Text>) -> Entry<'_, V> {
        let key = key.into();
        Entry { map: self, key }
    }

    /// The members, values to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&Text, &mut V)> {
        let members = self.0.make_mut().iter_mut();
        members.map(|(key, value)| (&*key, value))
    }

    /// The values, to be changed, in key order.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.iter_mut().map(|(_, value)| value)
    }

    /// The values, in key order.
    pub fn into_values(self) -> impl Iterator<Item = V> {
        self.into_iter().map(|(_, value)| value)
    }
}

/// A member that may be there.
#[derive(Debug)]
pub struct Entry<'m, V> {
    map: &'m mut Map<V>,
    key: Text,
}

impl<'m, V: Clone> Entry<'m, V> {
    /// Its value, made when it is not there.
    pub fn or_insert_with(self, make: impl FnOnce() -> V) -> &'m mut V {
        let place = match self.map.find(&self.key) {
            Ok(place) => place,
            Err(place) => {
                self.map.0.insert(place, (self.key, make()));
                place
            }
        };
        &mut self.map.0.make_mut()[place].1
    }

    /// Its value, this one when it is not there.
    pub fn or_insert(self, value: V) -> &'m mut V {
        self.or_insert_with(|| value)
    }
}

impl<V: PartialEq> PartialEq for Map<V> {
    fn eq(&self, other: &Map<V>) -> bool {
        let shared = std::ptr::eq(self.0.as_slice(), other.0.as_slice());
        shared || self.0 == other.0
    }
}

impl<V> Default for Map<V> {
    fn default() -> Map<V> {
        Map::new()
    }
}

impl<V: fmt::Debug> fmt::Debug for Map<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<V> Index<&str> for Map<V> {
    type Output = V;
    /// Panics when there is no such member.
    fn index(&self, key: &str) -> &V {
        self.get(key)
            .unwrap_or_else(|| panic!("no member {key:?} in a map"))
    }
}

impl<K: Into<Text>, V: Clone> FromIterator<(K, V)> for Map<V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(members: I) -> Map<V> {
        let members = members.into_iter();
        let mut members: Vec<(Text, V)> = members.map(|(key, value)| (key.into(), value)).collect();
        // The last of a name counts; the order of equals is kept.
        members.sort_by(|(one, _), (other, _)| one.cmp(other));
        members.dedup_by(|later, earlier| {
            let again = later.0 == earlier.0;
            if again {
                mem::swap(later, earlier);
            }
            again
        });
        Map(members.into())
    }
}

impl<K: Into<Text>, V: Clone, const N: usize> From<[(K, V); N]> for Map<V> {
    fn from(members: [(K, V); N]) -> Map<V> {
        members.into_iter().collect()
    }
}

impl<V: Clone> From<BTreeMap<String, V>> for Map<V> {
    fn from(members: BTreeMap<String, V>) -> Map<V> {
        members.into_iter().collect()
    }
}

impl<K: Into<Text>, V: Clone> Extend<(K, V)> for Map<V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, members: I) {
        for (key, value) in members {
            self.insert(key, value);
        }
    }
}

impl<V: Clone> IntoIterator for Map<V> {
    type Item = (Text, V);
    type IntoIter = ecow::vec::IntoIter<(Text, V)>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a, V> IntoIterator for &'a Map<V> {
    type Item = (&'a Text, &'a V);
    type IntoIter = Iter<'a, V>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(members: &[(&str, i32)]) -> Map<i32> {
        let owned = members
            .iter()
            .map(|(key, value)| ((*key).to_owned(), *value));
        owned.collect()
    }

    #[test]
    fn members_are_in_key_order_and_the_last_of_a_name_counts() {
        let map = map(&[("b", 1), ("a", 2), ("b", 3)]);
        assert_eq!(format!("{map:?}"), r#"{"a": 2, "b": 3}"#);
        assert_eq!((map["a"], map.get("c")), (2, None));
    }

    #[test]
    fn a_change_of_one_clone_is_not_seen_by_the_other() {
        let one = map(&[("a", 1)]);
        let mut other = one.clone();
        other.insert("b".to_owned(), 2);
        other.values_mut().for_each(|value| *value += 10);
        assert_eq!(one, map(&[("a", 1)]));
        assert_eq!(other, map(&[("a", 11), ("b", 12)]));
    }

    #[test]
    fn maps_without_members_are_equal_however_they_became_so() {
        let mut emptied = map(&[("a", 1)]);
        emptied.remove("a");
        assert_eq!(emptied, Map::new());
        assert_eq!(emptied.into_iter().count(), 0);
    }
}
