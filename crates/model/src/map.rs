//! Maps by name: small, in key order, cheap to clone.

use std::{collections::BTreeMap, fmt, mem, ops::Index, sync::Arc};

/// A map from names to values, ordered by name: parameters, outputs, members of a value.
///
/// Most have a handful of members and a deployment has them by the hundred thousand, so it is one
/// allocation of just that size, none when empty. Clones share it until one of them is changed:
/// what is applied, recorded and read again is mostly the same. Reads and changes like the maps
/// of the standard library.
#[derive(Clone)]
pub struct Map<V>(Option<Arc<Vec<(String, V)>>>);

impl<V> Map<V> {
    /// Without members.
    pub const fn new() -> Map<V> {
        Map(None)
    }

    fn members(&self) -> &[(String, V)] {
        self.0.as_deref().map_or(&[], Vec::as_slice)
    }

    fn find(&self, key: &str) -> Result<usize, usize> {
        self.members()
            .binary_search_by(|(name, _)| name.as_str().cmp(key))
    }

    /// How many members.
    pub fn len(&self) -> usize {
        self.members().len()
    }

    /// True without members.
    pub fn is_empty(&self) -> bool {
        self.members().is_empty()
    }

    /// The value of this name.
    pub fn get(&self, key: &str) -> Option<&V> {
        let place = self.find(key).ok()?;
        Some(&self.members()[place].1)
    }

    /// Whether there is a member of this name.
    pub fn contains_key(&self, key: &str) -> bool {
        self.find(key).is_ok()
    }

    /// The members, in key order.
    pub fn iter(&self) -> Iter<'_, V> {
        self.members().iter().map(|(key, value)| (key, value))
    }

    /// The names, in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &String> + Clone {
        self.members().iter().map(|(key, _)| key)
    }

    /// The values, in key order.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> + Clone {
        self.members().iter().map(|(_, value)| value)
    }
}

/// The members of a map, in key order.
pub type Iter<'a, V> =
    std::iter::Map<std::slice::Iter<'a, (String, V)>, fn(&'a (String, V)) -> (&'a String, &'a V)>;

/// Whoever changes a shared map gets a copy of its own first.
impl<V: Clone> Map<V> {
    fn own(&mut self) -> &mut Vec<(String, V)> {
        Arc::make_mut(self.0.get_or_insert_default())
    }

    /// The value of this name, to be changed.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut V> {
        let place = self.find(key).ok()?;
        Some(&mut self.own()[place].1)
    }

    /// Sets a member; returns what it was.
    pub fn insert(&mut self, key: String, value: V) -> Option<V> {
        match self.find(&key) {
            Ok(place) => Some(mem::replace(&mut self.own()[place].1, value)),
            Err(place) => {
                self.own().insert(place, (key, value));
                None
            }
        }
    }

    /// Takes a member away.
    pub fn remove(&mut self, key: &str) -> Option<V> {
        let place = self.find(key).ok()?;
        Some(self.own().remove(place).1)
    }

    /// Takes all members away.
    pub fn clear(&mut self) {
        self.0 = None;
    }

    /// Keeps the members that are wanted.
    pub fn retain(&mut self, mut wanted: impl FnMut(&String, &mut V) -> bool) {
        if !self.is_empty() {
            self.own().retain_mut(|(key, value)| wanted(key, value));
        }
    }

    /// A member that may be there.
    pub fn entry(&mut self, key: String) -> Entry<'_, V> {
        Entry { map: self, key }
    }

    /// The members, values to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&String, &mut V)> {
        let members = self.0.as_mut().map(Arc::make_mut);
        let members = members.into_iter().flatten();
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
    key: String,
}

impl<'m, V: Clone> Entry<'m, V> {
    /// Its value, made when it is not there.
    pub fn or_insert_with(self, make: impl FnOnce() -> V) -> &'m mut V {
        let place = match self.map.find(&self.key) {
            Ok(place) => place,
            Err(place) => {
                self.map.own().insert(place, (self.key, make()));
                place
            }
        };
        &mut self.map.own()[place].1
    }

    /// Its value, this one when it is not there.
    pub fn or_insert(self, value: V) -> &'m mut V {
        self.or_insert_with(|| value)
    }
}

impl<V: PartialEq> PartialEq for Map<V> {
    fn eq(&self, other: &Map<V>) -> bool {
        let shared = match (&self.0, &other.0) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            (None, Some(_)) | (Some(_), None) => false,
        };
        shared || self.members() == other.members()
    }
}

impl<V> Default for Map<V> {
    fn default() -> Map<V> {
        Map(None)
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

impl<V: Clone> FromIterator<(String, V)> for Map<V> {
    fn from_iter<I: IntoIterator<Item = (String, V)>>(members: I) -> Map<V> {
        let mut members: Vec<(String, V)> = members.into_iter().collect();
        // The last of a name counts; the order of equals is kept.
        members.sort_by(|(one, _), (other, _)| one.cmp(other));
        members.dedup_by(|later, earlier| {
            let again = later.0 == earlier.0;
            if again {
                mem::swap(later, earlier);
            }
            again
        });
        members.shrink_to_fit();
        Map((!members.is_empty()).then(|| Arc::new(members)))
    }
}

impl<V: Clone, const N: usize> From<[(String, V); N]> for Map<V> {
    fn from(members: [(String, V); N]) -> Map<V> {
        members.into_iter().collect()
    }
}

impl<V: Clone> From<BTreeMap<String, V>> for Map<V> {
    fn from(members: BTreeMap<String, V>) -> Map<V> {
        members.into_iter().collect()
    }
}

impl<V: Clone> Extend<(String, V)> for Map<V> {
    fn extend<I: IntoIterator<Item = (String, V)>>(&mut self, members: I) {
        for (key, value) in members {
            self.insert(key, value);
        }
    }
}

impl<V: Clone> IntoIterator for Map<V> {
    type Item = (String, V);
    type IntoIter = std::vec::IntoIter<(String, V)>;
    fn into_iter(self) -> Self::IntoIter {
        self.0
            .map(Arc::unwrap_or_clone)
            .unwrap_or_default()
            .into_iter()
    }
}

impl<'a, V> IntoIterator for &'a Map<V> {
    type Item = (&'a String, &'a V);
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
