//! Lists of one kind of thing, one after the other in one list.

use std::ops::{Index, Range};

/// A list for each of 0, 1, 2 and so on.
///
/// A plan of thousands of resources spends its time waiting for memory, so thousands of lists are
/// two pieces of it, and walking them goes through these from front to end.
#[derive(Debug, Clone)]
pub(crate) struct Lists<T> {
    items: Vec<T>,
    /// Where each list ends.
    ends: Vec<usize>,
}

impl<T> Lists<T> {
    /// None yet, with room for so many that have one item each.
    pub fn with_room(lists: usize) -> Lists<T> {
        Lists {
            items: Vec::with_capacity(lists),
            ends: Vec::with_capacity(lists),
        }
    }

    /// How many lists.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether all of them are empty.
    pub fn are_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// One more list, of these.
    pub fn push(&mut self, list: impl IntoIterator<Item = T>) {
        self.items.extend(list);
        self.ends.push(self.items.len());
    }

    /// Each of them.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &[T]> + ExactSizeIterator + Clone {
        (0..self.len()).map(|list| &self[list])
    }

    /// All items, each with the number of its list.
    pub fn items(&self) -> impl Iterator<Item = (usize, &T)> + Clone {
        let lists = self.iter().enumerate();
        lists.flat_map(|(list, items)| items.iter().map(move |item| (list, item)))
    }

    /// Where one lies among all items.
    pub fn span(&self, list: usize) -> Range<usize> {
        let begin = list.checked_sub(1).map_or(0, |before| self.ends[before]);
        begin..self.ends[list]
    }

    /// An item by its place among all of them.
    pub fn at(&self, place: usize) -> &T {
        &self.items[place]
    }
}

impl<T: Copy + Default> Lists<T> {
    /// So many lists of these items, each with the number of its list; those of one list stay in
    /// the order in which they are given.
    pub fn of(count: usize, items: impl Iterator<Item = (usize, T)> + Clone) -> Lists<T> {
        let mut ends = vec![0; count];
        let mut item_count = 0;
        for (list, _) in items.clone() {
            ends[list] += 1;
            item_count += 1;
        }
        // First where each list begins, and in the end where it ends.
        let mut begin = 0;
        for end in &mut ends {
            begin += std::mem::replace(end, begin);
        }
        let mut all = vec![T::default(); item_count];
        for (list, item) in items {
            all[ends[list]] = item;
            ends[list] += 1;
        }
        Lists { items: all, ends }
    }
}

impl<T> Index<usize> for Lists<T> {
    type Output = [T];
    fn index(&self, list: usize) -> &[T] {
        &self.items[self.span(list)]
    }
}

impl<T, L: IntoIterator<Item = T>> FromIterator<L> for Lists<T> {
    fn from_iter<N: IntoIterator<Item = L>>(lists: N) -> Lists<T> {
        let lists = lists.into_iter();
        let mut all = Lists::with_room(lists.size_hint().0);
        lists.for_each(|list| all.push(list));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_of_one_list_stay_in_their_order() {
        let lists = Lists::of(3, [(2, 'a'), (0, 'b'), (2, 'c')].into_iter());
        assert_eq!(
            lists.iter().collect::<Vec<_>>(),
            [&['b'][..], &[], &['a', 'c']]
        );
        let items: Vec<_> = lists.items().collect();
        assert_eq!(items, [(0, &'b'), (2, &'a'), (2, &'c')]);
    }
}
