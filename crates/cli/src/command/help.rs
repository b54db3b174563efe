//! `notation help [TOPIC]`: a command's flags, or the page of an error code.

use clap::CommandFactory as _;

use crate::{
    args::{Cli, Help},
    exit::Exit,
    failure::{Failure, Outcome},
    pages,
    printer::Printer,
};

/// Prints help to stdout.
pub fn run(args: &Help, printer: &Printer) -> Outcome {
    if let [code] = args.topic.as_slice()
        && let Some(page) = pages::page(code)
    {
        printer.raw(page);
        return Ok(Exit::Done);
    }
    let mut command = Cli::command();
    // Names of subcommands are spelled out in usage lines only once it is built.
    command.build();
    let mut found = &mut command;
    for word in &args.topic {
        found = match found.find_subcommand_mut(word) {
            Some(found) => found,
            None => return Err(unknown(&args.topic.join(" "))),
        };
    }
    printer.raw(&found.render_long_help().to_string());
    Ok(Exit::Done)
}

fn unknown(topic: &str) -> Failure {
    let failure = Failure::new(
        Exit::Usage,
        "usage::unknown_topic",
        format!("there is no command and no error code called {topic:?}"),
    );
    match topic.split_once("::") {
        Some((area, _)) => {
            let known: Vec<_> = pages::PAGES
                .iter()
                .map(|(code, _)| *code)
                .filter(|code| code.starts_with(&format!("{area}::")))
                .collect();
            failure.help(match known.as_slice() {
                [] => {
                    "`notation help` lists the commands; error codes are printed above each error"
                        .into()
                }
                known => format!("codes of this area: {}", known.join(", ")),
            })
        }
        None => failure.help("`notation help` lists the commands"),
    }
}
