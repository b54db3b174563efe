//! `notation help [TOPIC]`: a command's flags, or the page of an error code.

use clap::CommandFactory as _;
use serde_json::json;

use crate::{
    args::{Cli, Help},
    exit::Exit,
    failure::{Failure, Outcome},
    pages,
    printer::Printer,
    render::page,
};

/// Prints help to stdout.
pub fn run(args: &Help, printer: &Printer) -> Outcome {
    let topic = args.topic.join(" ");
    let text = match args.topic.as_slice() {
        [code] if code.contains("::") => {
            let page = pages::page(code).ok_or_else(|| unknown(&topic))?;
            read(page, printer)
        }
        words => match (command(words), pages::without_area(&topic).as_slice()) {
            (Some(help), _) => help,
            (None, []) => return Err(unknown(&topic)),
            // The same word in several areas: all of them.
            (None, found) => {
                let pages = found.iter().map(|(_, page)| read(page, printer));
                pages.collect::<Vec<_>>().join("\n")
            }
        },
    };
    printer.event("help", json!({ "topic": topic, "text": text }));
    printer.out(text);
    Ok(Exit::Done)
}

/// A page for whoever reads it: a person at a terminal, or a file and a script.
fn read(page: &str, printer: &Printer) -> String {
    match printer.reader() {
        Some(paint) => page::for_terminal(page, printer.width, paint),
        None => page.to_owned(),
    }
}

fn command(words: &[String]) -> Option<String> {
    let mut command = Cli::command();
    // Names of subcommands are spelled out in usage lines only once it is built.
    command.build();
    let mut found = &mut command;
    for word in words {
        found = found.find_subcommand_mut(word)?;
    }
    Some(found.render_long_help().to_string())
}

fn unknown(topic: &str) -> Failure {
    let failure = Failure::new(
        Exit::Usage,
        "usage::unknown_topic",
        format!("there is no command and no error code called {topic:?}"),
    );
    let area = topic.split("::").next().unwrap_or(topic);
    let known: Vec<_> = pages::PAGES
        .iter()
        .map(|(code, _)| *code)
        .filter(|code| code.starts_with(&format!("{area}::")))
        .collect();
    if !known.is_empty() {
        return failure.help(format!("codes of this area: {}", known.join(", ")));
    }
    let alike = |name: &str| strsim::normalized_damerau_levenshtein(name, topic);
    let commands = Cli::command();
    let names = commands.get_subcommands().map(clap::Command::get_name);
    let nearest = names
        .chain(pages::PAGES.iter().map(|(code, _)| *code))
        .max_by(|a, b| alike(a).total_cmp(&alike(b)))
        .filter(|name| alike(name) > 0.6);
    let list = "`notation help` lists the commands; codes stand above each error";
    failure.help(match nearest {
        Some(name) => format!("did you mean `notation help {name}`? {list}"),
        None => list.to_owned(),
    })
}
