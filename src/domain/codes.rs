//! The codes of refusals, of warnings and notes, and of errors in a manifest. Scripts match on them, so a code stays once it is released.
//! `shotlist schema diagnostics` lists all of them.

use std::borrow::Cow;
use std::error::Error;

use schemars::JsonSchema;
use serde::Serialize;

/// An error that can end a command. Its text, code, and help are one declaration.
pub trait Explained: Error {
    /// The code for scripts, which has one exit code.
    fn code(&self) -> RefusalCode;

    /// The next step, as an imperative.
    fn help(&self) -> Cow<'static, str>;
}

/// The help after the ledger refused a write that a new start makes unnecessary.
pub(crate) const RUN_AGAIN: &str = "run the command again; it continues from the ledger";
/// The help after another run or the user changed an input of the plan.
pub(crate) const SHOW_PLAN: &str = "look at the plan again with `--plan`";
/// The help for a file that can't be written.
pub(crate) const WRITABLE: &str = "check the path, the permissions of its directory, and the free space";

/// Declares errors that can end a command: `from` lists errors that keep their text, code, and help, `or` those of this type.
/// The second form declares the code and the help of a struct.
macro_rules! explained {
    ($(#[$($about:tt)*])* $visibility:vis enum $name:ident from {
        $($(#[$($from_doc:tt)*])* $from:ident($source:ty),)*
    } or {
        $($(#[$($meta:tt)*])* $variant:ident $(($($tuple:tt)*))? $({$($fields:tt)*})? => $code:ident, $help:expr;)*
    }) => {
        $(#[$($about)*])*
        #[derive(Debug, thiserror::Error)]
        $visibility enum $name {
            $($(#[$($from_doc)*])* #[error(transparent)] $from(#[from] $source),)*
            $($(#[$($meta)*])* $variant $(($($tuple)*))? $({$($fields)*})?,)*
        }

        impl $crate::domain::Explained for $name {
            fn code(&self) -> $crate::domain::RefusalCode {
                match self {
                    $(Self::$from(error) => error.code(),)*
                    $(Self::$variant { .. } => $crate::domain::RefusalCode::$code,)*
                }
            }

            fn help(&self) -> std::borrow::Cow<'static, str> {
                match self {
                    $(Self::$from(error) => error.help(),)*
                    $(Self::$variant { .. } => $help.into(),)*
                }
            }
        }
    };
    ($name:ident $(($it:ident))? => $code:ident, $help:expr) => {
        impl $crate::domain::Explained for $name {
            fn code(&self) -> $crate::domain::RefusalCode {
                $crate::domain::RefusalCode::$code
            }

            fn help(&self) -> std::borrow::Cow<'static, str> {
                $(let $it = self;)?
                $help.into()
            }
        }
    };
}

pub(crate) use explained;

macro_rules! codes {
    ($(#[$doc:meta])* $name:ident: $($variant:ident $code:literal $meaning:literal)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, JsonSchema)]
        pub enum $name {
            $(#[doc = $meaning] #[serde(rename = $code)] $variant,)*
        }

        impl $name {
            /// Every code.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Its short name, for scripts.
            pub fn code(self) -> &'static str {
                match self {
                    $(Self::$variant => $code,)*
                }
            }
        }
    };
}

codes! {
    /// A reason why a command ends before its work. Each has one exit code.
    RefusalCode:
    ImportInvalid "import-invalid" "A file of tasks to import can't be read, or is of another batch."
    AlreadyPaid "already-paid" "Jobs are already paid for, and `--buy-again` does not name them."
    ApprovalInvalid "approval-invalid" "`--approved` is neither a whole digest nor a saved plan."
    BatchLocked "batch-locked" "Another run has locked the batch."
    BillInvalid "bill-invalid" "The bill, or a line of it, can't be read."
    CatalogInvalid "catalog-invalid" "The file of `--catalog` can't be read, or is not a catalog."
    ChoicesInvalid "choices-invalid" "A file of choices or IDs can't be read, is of another batch, or contradicts itself."
    FileExists "file-exists" "A file that shotlist did not write is in the way."
    Frozen "frozen" "Purchases in the ledger are frozen."
    FrozenByFailover "frozen-by-failover" "Purchases are frozen because another database server took over."
    KeyInvalid "key-invalid" "The API key can't be read, or is not a key."
    KeyMissing "key-missing" "No API key is set."
    KeyRefused "key-refused" "The service refuses the API key."
    LabelUnknown "label-unknown" "No submitted job has the label."
    LedgerDamaged "ledger-damaged" "The ledger is damaged."
    LedgerKind "ledger-kind" "Of the ledger and the service, one is real and the other simulated."
    LedgerMissing "ledger-missing" "No ledger is there."
    LedgerNotEmpty "ledger-not-empty" "A ledger would be copied into one that has attempts."
    LedgerPrivate "ledger-private" "The manifest requires a shared ledger."
    LedgerRefuses "ledger-refuses" "The ledger refuses a change."
    LedgerUnavailable "ledger-unavailable" "The ledger can't be opened or reached."
    ManifestInvalid "manifest-invalid" "The manifest has errors; each has a code of its own."
    ManifestMissing "manifest-missing" "The manifest is not there, or is a spreadsheet."
    MovedOnto "moved-onto" "`moved` gives a purchase to a job that has one."
    NoAssetCommand "no-asset-command" "A job has a local image, but `--asset-command` is not set."
    NoClient "no-client" "The HTTP client or the simulator can't start."
    NoConnection "no-connection" "A plan with requests has no connection to a service."
    ConfirmationNeeded "confirmation-needed" "Spending requires confirmation."
    NoMatch "no-match" "A pattern, a tag, or an ID matches no job."
    NotAReport "not-a-report" "A report would replace a file that is not a report."
    NotConfirmed "not-confirmed" "The prompt was not answered with yes."
    NotArchivable "not-archivable" "A job has no video to archive, or it is not in the output directory."
    NotResolvable "not-resolvable" "A job has nothing to resolve, or more than one thing."
    NotWritable "not-writable" "A file, the ledger, or stdout can't be written."
    OptionInvalid "option-invalid" "An option has a wrong value, or contradicts another."
    OtherAccount "other-account" "Active tasks belong to another base URL or API key."
    OverLimit "over-limit" "The run would exceed a spend limit."
    PlanDiffers "plan-differs" "The plan differs from the approved plan."
    ProgramInvalid "program-invalid" "A hook can't be started."
    ReplacesInput "replaces-input" "A video would replace a file that the run reads."
    ReportUnknown "report-unknown" "A report has purchases that the ledger does not have."
    RunnerMayLive "runner-may-live" "The runner that sent a job may still run."
    SecretInRequest "secret-in-request" "A request contains the API key or another secret."
    SheetInvalid "sheet-invalid" "A spreadsheet can't be read, or is outside the manifest's directory."
    TaskMismatch "task-mismatch" "A task differs from the job that it is recorded for."
    TaskTaken "task-taken" "A task ID belongs to another job."
    TaskUnconfirmed "task-unconfirmed" "The service does not confirm a task ID."
    TopicUnknown "topic-unknown" "No command or topic has this name."
    Unreachable "unreachable" "The service can't be reached."
    WarningsNotAccepted "warnings-not-accepted" "A warning may mean a wrong purchase, and no terminal can ask."
    UrlInvalid "url-invalid" "The base URL is not one."
    UrlMissing "url-missing" "No base URL is set."
}

codes! {
    /// A warning, a note, or an event of a run. In the JSON log, an event of a run has its code with underscores as its name.
    NoticeCode:
    AccountsLeft "accounts-left" "Tasks of other accounts stay at the service."
    ActiveTasks "active-tasks" "The run polls active tasks of earlier runs."
    AlreadyPaid "already-paid" "Jobs are already paid for; buying them again requires `--buy-again` or a confirmation of its own."
    BatchesLeft "batches-left" "Too many other batches have open work."
    BillApplied "bill-applied" "Facts from the bill were recorded."
    BillNotApplied "bill-not-applied" "The bill settles something, and `--apply` records it."
    ChoiceSpent "choice-spent" "A retake was asked for that is not due any more."
    BatchTaken "batch-taken" "Another run finishes a batch."
    ColumnsUnused "columns-unused" "Columns of a spreadsheet are not used."
    CommitCounter "commit-counter" "The commit counter of the ledger can't be read or written."
    Completed "completed" "A task is completed."
    DefaultSkipped "default-skipped" "A default does not apply to the jobs of a model."
    DeliveryMismatch "delivery-mismatch" "The first video of a model differs from its request; another duration or shape stops submitting the model."
    ModelOnTrial "model-on-trial" "A model begins with one job in flight, because its newest delivery was not as it was bought."
    ModelMismatch "model-mismatch" "The service reports another model of the catalog than was requested, and submitting that one stops."
    EchoMismatch "echo-mismatch" "The service reports another request than was sent."
    Executed "executed" "A hook ended for a video."
    FacesNotRead "faces-not-read" "`spend` can't read the faces of a manifest."
    Failed "failed" "A task failed."
    Fetched "fetched" "A video was downloaded."
    FileLeft "file-left" "A temporary file can't be removed."
    HeartbeatFailed "heartbeat-failed" "A lease can't be renewed now."
    Held "held" "Jobs wait for a face review."
    HookVideoGone "hook-video-gone" "A hook is skipped because its video is missing or changed."
    HooksStopped "hooks-stopped" "A hook failed too often in a row, and is not started again in this run."
    InDoubt "in-doubt" "The outcome of a submission is unknown."
    InDoubtElsewhere "in-doubt-elsewhere" "Another batch has jobs in doubt."
    JobClaimed "job-claimed" "Another run has submitted a job, or submits it."
    KeyReadable "key-readable" "Every user of this machine can read the key file."
    KeyUnprotected "key-unprotected" "The key can't be kept out of core dumps."
    LedgerBack "ledger-back" "The ledger is reachable again."
    LedgerBegun "ledger-begun" "A new ledger was created."
    LedgerLost "ledger-lost" "The connection to the ledger broke; nothing is bought until it is back."
    LedgerSlow "ledger-slow" "The ledger answered too late to submit a job; the run tries again."
    LeftOut "left-out" "Due jobs are left for another run."
    UntilKept "until-kept" "Takes are bought one by one until one is kept."
    LocalImages "local-images" "Due jobs use a local image."
    MoreDiagnostics "more-diagnostics" "Some diagnostics are not shown."
    NotBoughtAgain "not-bought-again" "A job is not bought again: it waits, or the run ended before."
    NotExecuted "not-executed" "A hook failed for a video."
    NotFetched "not-fetched" "A video can't be downloaded."
    NotSent "not-sent" "A job was not sent, because its image has no URL."
    OtherBatch "other-batch" "The run finishes another batch."
    OtherService "other-service" "The approved plan names another service."
    OverLimit "over-limit" "The plan exceeds a spend limit."
    Progress "progress" "How far the run is."
    Progressed "progressed" "A task is being generated."
    PurchasesFrozen "purchases-frozen" "The ledger is frozen; a run polls and downloads only."
    PutBack "put-back" "Records that the ledger had lost were restored."
    Reads "reads" "The plan reads other files."
    WaitsForImages "waits-for-images" "Jobs wait for an image that is not there yet."
    Stale "stale" "The image of a job changed since its purchase."
    RowsLeftOut "rows-left-out" "Rows of a file became no jobs."
    Recovered "recovered" "An earlier run ended between a submission and its response."
    Rejected "rejected" "The service rejected a job."
    ReplacesChoices "replaces-choices" "Earlier choices no longer count."
    ReportNotRead "report-not-read" "An earlier report can't be read, so it can't tell what is paid for."
    ReportNotWritten "report-not-written" "A report can't be written during the run."
    RequestFailed "request-failed" "A request failed and is repeated."
    Resolved "resolved" "The outcome of a job in doubt was recorded."
    RetakeNotEnded "retake-not-ended" "The end of a retake can't be recorded."
    RetakeUnfinished "retake-unfinished" "An earlier retake did not finish."
    Retrying "retrying" "A failed job is submitted again, and costs again."
    RunnerNotDeregistered "runner-not-deregistered" "The ledger does not know that this run has ended."
    SandboxServes "sandbox-serves" "The simulator is ready."
    SandboxStopped "sandbox-stopped" "The simulator stopped."
    ServiceRecovered "service-recovered" "The service responds again."
    SignalIgnored "signal-ignored" "A signal can't be caught."
    Simulated "simulated" "The simulator plays the service."
    SimulatorSpeed "simulator-speed" "The simulator is faster than usual, for a large batch."
    Started "started" "The run begins."
    Stopping "stopping" "Nothing more is submitted."
    Submitted "submitted" "The service accepted a job."
    TableFound "table-found" "A spreadsheet has other sheets, or a header below its first line."
    TaskAlias "task-alias" "The service uses a second ID for a task."
    TaskDenied "task-denied" "The service denies a task that it accepted."
    TaskLeft "task-left" "An active task stays at the service."
    TaskNotRecorded "task-not-recorded" "A task ID can't be recorded; the message has it."
    ToFetch "to-fetch" "A video is to be downloaded."
    UnknownStatus "unknown-status" "The service reports a state that its interface does not have."
    Waiting "waiting" "The service asked to wait."
    WaitingForLock "waiting-for-lock" "The run waits for another run of the batch."
    WaitingForRunners "waiting-for-runners" "Other runners have the slots of the account."
    WithinLimit "within-limit" "The plan keeps a spend limit."
    NearLimit "near-limit" "The plan uses at least 80 % of a spend limit."
    OldPrices "old-prices" "The prices of the catalog are older than 30 days."
    PriceMismatch "price-mismatch" "The service reports a higher cost than the catalog's price, and the model is not submitted any more."
    WorstCase "worst-case" "The most that the run can spend with its retries."
    WriterPanicked "writer-panicked" "The ledger's writer failed."
    Written "written" "Files were written."
}

codes! {
    /// A rule that a manifest can break.
    Rule:
    ShapeConflict "shape-conflict" "A job has both `shape` and `aspect_ratio` or `size`."
    ShapeUnknown "shape-unknown" "The shape is neither 16:9 nor 9:16."
    AspectRatioUnknown "aspect-ratio-unknown" "The family does not offer the aspect ratio."
    AxisEmpty "axis-empty" "An axis of a matrix has no values."
    AxisRepeats "axis-repeats" "An axis of a matrix has the same value twice."
    AxisReserved "axis-reserved" "The name of an axis is reserved for templates."
    AxisUnknown "axis-unknown" "`exclude` names an axis or a value that the matrix does not have."
    CellError "cell-error" "A used cell of a spreadsheet contains an error."
    CellsMerged "cells-merged" "A merged cell of a workbook reaches over several rows."
    ColumnUnknown "column-unknown" "`exclude` names a column or a value that the table does not have."
    ColumnUnread "column-unread" "A column looks like a field, and no template reads it."
    CsvDuplicateColumn "csv-duplicate-column" "Two columns of a sheet have the same name."
    CsvNoHeader "csv-no-header" "A sheet has no header row."
    CsvNoRows "csv-no-rows" "A file of rows is empty."
    CsvOpenQuote "csv-open-quote" "A quote in a sheet is never closed."
    CsvRagged "csv-ragged" "A row of a sheet has more or fewer cells than its header."
    CsvSeparator "csv-separator" "A sheet has an unknown separator."
    CsvTooLong "csv-too-long" "A file of rows has too many rows."
    DurationOutOfRange "duration-out-of-range" "The family does not offer the duration."
    Empty "empty" "The manifest is empty."
    EncodingUnknown "encoding-unknown" "There is no encoding of the name."
    EncodingUnnamed "encoding-unnamed" "A table is not in the encoding that the manifest names, or names none and is neither UTF-8 nor UTF-16."
    EscapeInPath "escape-in-path" "A path in double quotes has an escape of YAML."
    ExtraContradicts "extra-contradicts" "`extra` contains a documented field."
    ExtraNotJson "extra-not-json" "A value under `extra` can't be sent as JSON."
    ExtraUndocumented "extra-undocumented" "A field under `extra` is undocumented, and is sent as it is."
    FaceUnknown "face-unknown" "A face is not declared under `faces`."
    FieldNotOfFamily "field-not-of-family" "The model's family has no such field."
    FileDuplicate "file-duplicate" "Two jobs' videos would have the same file."
    FileInvalid "file-invalid" "A video can't be written to this path."
    FileIsAnMp4 "file-is-an-mp4" "The file of a video does not end in `.mp4`."
    IdDuplicate "id-duplicate" "Two jobs have the same ID, or IDs that differ only in letter case."
    IdInvalid "id-invalid" "An ID has an invalid character, or is too long."
    IdMissing "id-missing" "A job has no ID."
    ImageFileBlank "image-file-blank" "`image_file` is blank."
    ImageFileNoPicture "image-file-no-picture" "`image_file` is not an image."
    ImageIsAPage "image-is-a-page" "An image URL leads to a page, to several images, or to this machine."
    ImageKeyAlone "image-key-alone" "`image_key` is set without an image."
    ImageNotAUrl "image-not-a-url" "An image is not an http or https URL."
    ImageConflict "image-conflict" "A job has both `image` and `image_file`."
    JsonlMalformed "jsonl-malformed" "A line of a `.jsonl` file is not a JSON object."
    Invisible "invisible" "A key or a word contains an invisible character."
    KeyDuplicate "key-duplicate" "A mapping has a key twice."
    KeyNotText "key-not-text" "A key is not a string."
    LabelInvalid "label-invalid" "A label has an invalid name or value."
    LimitUnmatched "limit-unmatched" "A limit is for a label that no job has."
    MatrixAndJob "matrix-and-job" "A field is set on the job and in its matrix."
    MatrixEmpty "matrix-empty" "A matrix has no combination left."
    ModelMissing "model-missing" "A job has no model."
    ModelUnknown "model-unknown" "The catalog has no such model."
    MovedCycle "moved-cycle" "`moved` has a cycle."
    MovedFromJob "moved-from-job" "The old ID of `moved` is still a job."
    MovedToUnknown "moved-to-unknown" "The new ID of `moved` is not a job."
    MovedConflict "moved-conflict" "`moved` has an ID twice."
    NameMissing "name-missing" "A manifest from stdin has no `name`."
    NoJobs "no-jobs" "The manifest lists no jobs."
    NoRows "no-rows" "`for_each` lists no rows."
    NotMoney "not-money" "An amount is not in USD."
    PromptBlank "prompt-blank" "A prompt is blank."
    PromptEmptyCell "prompt-empty-cell" "An empty cell leaves a gap in a prompt."
    PromptPlaceholder "prompt-placeholder" "A prompt contains an unfilled placeholder."
    PromptMissing "prompt-missing" "A job has no prompt."
    PromptTooLong "prompt-too-long" "A prompt is too long for the family."
    PromptConflict "prompt-conflict" "A job has both `prompt` and `prompt_file`."
    ReviewMissing "review-missing" "A face has no `review`."
    ReviewPaidOn "review-paid-on" "The payment of a face review has an invalid or future date."
    ReviewUnknown "review-unknown" "A face's review is neither approved nor pending."
    RowNoVideo "row-no-video" "A row of a table looks like sums, or like the header."
    RowsHidden "rows-hidden" "Rows that are hidden in a workbook make jobs."
    SameRequest "same-request" "Two jobs have the same request."
    SetUnknown "set-unknown" "`--set` names an unknown variable."
    SheetUnknown "sheet-unknown" "A workbook has no sheet of that name."
    SizeMalformed "size-malformed" "A size is not written as `WIDTHxHEIGHT`."
    SizeNot720p "size-not-720p" "The short side of a size is not 720, the only documented one."
    TakesOutOfRange "takes-out-of-range" "`takes` is out of range."
    Template "template" "A template can't be rendered."
    TemplateCycle "template-cycle" "A template refers to its own field."
    TextCutOff "text-cut-off" "A `#` cuts off a string."
    TimezoneUnknown "timezone-unknown" "The time zone is unknown."
    TooManyJobs "too-many-jobs" "The manifest makes too many jobs."
    TooMuchText "too-much-text" "The requests of the manifest are too large."
    TypographicQuotes "typographic-quotes" "A value has typographic quotes, which YAML keeps."
    UnknownKey "unknown-key" "The key is unknown."
    Unreadable "unreadable" "A file can't be read."
    VarReserved "var-reserved" "The name of a variable is reserved for templates."
    VersionMissing "version-missing" "The manifest has no `version`."
    VersionUnknown "version-unknown" "The manifest has another `version`."
    WrongType "wrong-type" "A value has the wrong type."
    Yaml "yaml" "The manifest is not YAML."
    YamlLimit "yaml-limit" "The manifest is nested too deeply, or its references expand too far."
}

impl Rule {
    /// Returns whether a warning may mean that the run buys something that the user did not intend.
    pub fn may_buy_the_wrong_thing(self) -> bool {
        matches!(
            self,
            Self::CellsMerged
                | Self::ColumnUnknown
                | Self::ColumnUnread
                | Self::EscapeInPath
                | Self::FieldNotOfFamily
                | Self::ImageIsAPage
                | Self::PromptEmptyCell
                | Self::PromptPlaceholder
                | Self::RowNoVideo
                | Self::RowsHidden
                | Self::SameRequest
                | Self::TextCutOff
                | Self::UnknownKey
        )
    }

    /// Returns whether something is missing. In an entry with an unknown or mistyped key, that key is the cause.
    pub fn is_about_absence(self) -> bool {
        self.code().ends_with("-missing")
    }
}
