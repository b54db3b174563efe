//! Who has something to do in a plan.

use crate::{forecast::Expected, outlook::Survey, play::Play};

/// Which incarnations and cycles have something to do.
pub(crate) struct Writing {
    pub lives: Vec<bool>,
    /// Those, and whose record changes without a call. Of the others there is nothing to say.
    pub records: Vec<bool>,
    pub cycles: Vec<bool>,
}

impl Writing {
    pub fn of(survey: &Survey<'_, '_>, play: &Play, expected: &Expected) -> Writing {
        let all = 0..play.lives.len();
        let lives: Vec<bool> = all.map(|life| expected.writes(life)).collect();
        let mut records = lives.clone();
        for life in expected.restated.keys() {
            records[*life] = true;
        }
        let cycles = survey
            .program
            .cycles
            .iter()
            .map(|members| members.iter().any(|member| lives[*member]))
            .collect();
        Writing {
            lives,
            records,
            cycles,
        }
    }
}
