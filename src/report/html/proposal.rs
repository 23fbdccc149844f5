//! A plan as a contact sheet, before anything is paid: every job with its finished prompt, its price, its shape, its picture and what looks
//! like a slip. Bounded and safe like the report's page, with the same style and script.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use minijinja::value::Serde;
use serde::Serialize;

use super::page::{SCRIPT, STYLE, engine};
use super::policy::Policy;
use super::text::{plain, web_link};

/// The most jobs that are drawn: more than a browser shows smoothly, and than anybody looks at.
const MOST: usize = 5000;

/// A plan, as a page shows it. Texts may be anything; nothing in them can run.
#[derive(Serialize)]
pub(crate) struct Proposal {
    /// The manifest's name, and its batch value.
    pub name: String,
    pub batch: String,
    /// What is said first, in big letters: what it is about, the figure, and more of it.
    pub figures: Vec<[String; 3]>,
    /// What there is to know of the whole: limits, what is held, what was bought before.
    pub told: Vec<String>,
    /// What looks like a slip, and is about no job.
    pub warnings: Vec<String>,
    /// The command that buys exactly this.
    pub command: Option<String>,
    pub cards: Vec<ProposalCard>,
    /// Pictures of this machine by their SHA-256, as addresses that hold them whole.
    pub pictures: BTreeMap<String, String>,
}

/// One job of a plan.
#[derive(Serialize)]
pub(crate) struct ProposalCard {
    pub id: String,
    /// What is done, for scripts and for people, and the state whose colour it has.
    pub action: &'static str,
    pub label: &'static str,
    pub colour: &'static str,
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
    /// Where its picture is: an address, or the key of one that is held in the page.
    pub image: Option<String>,
    pub picture: Option<String>,
}

/// What stands above the cards besides.
#[derive(Serialize)]
struct Above<'p> {
    policy: String,
    version: &'static str,
    style: &'static str,
    what: &'static str,
    is_plan: bool,
    left_out: usize,
    states: Vec<Chip>,
    models: Vec<Model<'p>>,
    tags: Vec<&'p str>,
    #[serde(flatten)]
    plan: &'p Proposal,
}

#[derive(Serialize)]
struct Chip {
    name: &'static str,
    label: &'static str,
    class: &'static str,
    count: usize,
}

#[derive(Serialize)]
struct Model<'p> {
    model: &'p str,
}

#[derive(Serialize)]
struct Below<'p> {
    script: &'static str,
    pictures: Option<&'p BTreeMap<String, String>>,
}

/// Writes the page.
pub(crate) fn write(mut plan: Proposal, to: &mut impl Write) -> io::Result<()> {
    let mut policy = Policy::new(STYLE, SCRIPT);
    for card in &mut plan.cards {
        card.image = card.image.take().filter(|url| web_link(url).is_some());
        policy.allow_pictures_of(card.image.as_deref());
        for text in [&mut card.reason, &mut card.model, &mut card.prompt].into_iter().chain(&mut card.tags) {
            *text = plain(text);
        }
        for text in card.warnings.iter_mut().chain(&mut card.more).chain(&mut card.shape) {
            *text = plain(text);
        }
    }
    for text in plan.told.iter_mut().chain(&mut plan.warnings).chain([&mut plan.name, &mut plan.batch]) {
        *text = plain(text);
    }
    let left_out = plan.cards.len().saturating_sub(MOST);
    let cards = std::mem::take(&mut plan.cards);
    let (mut chips, mut models, mut tags) = (BTreeMap::<_, Chip>::new(), BTreeSet::new(), BTreeSet::new());
    for ProposalCard { action, label, colour, model, tags: own, .. } in &cards {
        let chip = Chip { name: action, label, class: colour, count: 0 };
        chips.entry(*action).or_insert(chip).count += 1;
        models.insert(model.as_str());
        tags.extend(own.iter().map(String::as_str));
    }
    let engine = engine().map_err(io::Error::other)?;
    let mut render = |name: &str, context: minijinja::Value| {
        let template = engine.get_template(name).map_err(io::Error::other)?;
        template.render_captured_to(context, &mut *to).map(drop).map_err(io::Error::other)
    };
    let above = Above {
        policy: policy.to_string(),
        version: env!("CARGO_PKG_VERSION"),
        style: STYLE,
        what: "plan",
        is_plan: true,
        left_out,
        states: chips.into_values().collect(),
        models: models.into_iter().map(|model| Model { model }).collect(),
        tags: tags.into_iter().collect(),
        plan: &plan,
    };
    render("proposal.html", Serde(above).into())?;
    for card in cards.iter().take(MOST) {
        render("proposal_card.html", Serde(card).into())?;
    }
    let pictures = (!plan.pictures.is_empty()).then_some(&plan.pictures);
    render("foot.html", Serde(Below { script: SCRIPT, pictures }).into())
}
