//! A plan as a contact sheet, before anything is paid: every job with its finished prompt, its price, its shape, its image and what looks
//! like a slip. Bounded and safe like the report's page, with the same style and script.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use askama::Template;

use super::frame::{Chip, Foot, Head, Tools};
use super::text::web_link;

/// The most jobs that are drawn: more than a browser shows smoothly, and than anybody looks at.
const MOST: usize = 5000;

/// A plan, as a page shows it. Texts may be anything; nothing in them can run.
pub(crate) struct Proposal {
    /// The manifest's name, and its batch value.
    pub name: String,
    pub batch: String,
    /// The large figures: a title, the figure, and a remark.
    pub figures: Vec<[String; 3]>,
    /// The facts of the whole plan: limits, held jobs, earlier purchases.
    pub statements: Vec<String>,
    /// The warnings that are about no job.
    pub warnings: Vec<String>,
    /// The command that buys exactly this.
    pub command: Option<String>,
    pub cards: Vec<ProposalCard>,
    /// Images of this machine by their SHA-256, as addresses that hold them whole.
    pub local_images: BTreeMap<String, String>,
}

/// One job of a plan.
#[derive(Template)]
#[template(path = "proposal_card.html")]
pub(crate) struct ProposalCard {
    pub id: String,
    /// The action, for scripts and people, and the state that gives it its color.
    pub action: &'static str,
    pub color: &'static str,
    pub reason: String,
    pub model: String,
    pub price: String,
    pub duration: Option<i64>,
    pub shape: Option<String>,
    pub is_upright: bool,
    pub tags: Vec<String>,
    /// Labels, and where its video goes.
    pub more: Vec<String>,
    pub prompt: String,
    pub warnings: Vec<String>,
    /// The image: a URL, or the key of one that is embedded in the page.
    pub image: Option<String>,
    pub local_image: Option<String>,
}

/// The part above the cards.
#[derive(Template)]
#[template(path = "proposal.html")]
struct Above<'p> {
    head: Head,
    tools: Tools<'p>,
    figures: &'p [[String; 3]],
    statements: &'p [String],
    warnings: &'p [String],
    command: Option<&'p str>,
    left_out: usize,
}

/// Writes the page.
pub(crate) fn write(mut plan: Proposal, to: &mut impl Write) -> io::Result<()> {
    let mut policy = Head::policy();
    for card in &mut plan.cards {
        card.image = card.image.take().filter(|url| web_link(url).is_some());
        policy.allow_images_of(card.image.as_deref());
    }
    let Proposal { name, batch, figures, statements, warnings, command, cards, local_images } = plan;
    let (mut chips, mut models, mut tags) = (BTreeMap::<_, Chip<'_>>::new(), BTreeSet::new(), BTreeSet::new());
    for ProposalCard { action, color, model, tags: own, .. } in &cards {
        let chip = Chip { name: action, label: action, class: color, count: 0 };
        chips.entry(*action).or_insert(chip).count += 1;
        models.insert(model.as_str());
        tags.extend(own.iter().map(String::as_str));
    }
    let above = Above {
        head: Head::new("plan", policy, name, batch),
        tools: Tools {
            states: chips.into_values().collect(),
            models: models.into_iter().collect(),
            tags: tags.into_iter().collect(),
            retake: None,
        },
        figures: &figures,
        statements: &statements,
        warnings: &warnings,
        command: command.as_deref(),
        left_out: cards.len().saturating_sub(MOST),
    };
    above.write_into(to)?;
    for card in cards.iter().take(MOST) {
        card.write_into(to)?;
    }
    Foot::new(&local_images).write_into(to)
}
