//! The list of endpoints.
//!
//! Each line: the name of the operation in the document, the endpoint's type, its method and its path, what
//! path and query hold, what is sent and what comes back (`()` nothing, `(T)` JSON, `([T])` a JSON array, `(raw)` something
//! else), and its danger. The line above is the summary that programs read.

use std::fmt::Display;

use axum::Router;
use http::Method;

use super::{
    Danger, Endpoint, Facts, HasHandler, Raw, Target,
    document::{Named, Param, Shape},
};
use crate::types;

macro_rules! body_type {
    (()) => { () };
    ((raw)) => { Raw };
    (([$item:ty])) => { Vec<$item> };
    (($whole:ty)) => { $whole };
}

macro_rules! body_shape {
    (()) => {
        Shape::Nothing
    };
    ((raw)) => {
        Shape::Raw
    };
    (([$item:ty])) => {
        Shape::Many(Named::of::<$item>())
    };
    (($whole:ty)) => {
        Shape::One(Named::of::<$whole>())
    };
}

macro_rules! endpoints {
    ($(#[$doc:meta])+ $group:ident {$( $tag:literal {$(
        #[doc = $summary:literal]
        $id:ident: $name:ident, $method:ident $path:literal [$($param:expr),*]; $request:tt -> $response:tt, $danger:ident;
    )+})+}) => {
        $($(
            #[doc = $summary]
            #[derive(Clone, Copy, Debug)]
            pub struct $name;

            impl $name {
                /// Its target with the first part of the path filled in.
                pub fn of(self, part: impl Display) -> Target<Self> {
                    Target::from(self).of(part)
                }

                /// Its target with a parameter in the query.
                pub fn with(self, name: &str, value: impl Display) -> Target<Self> {
                    Target::from(self).with(name, value)
                }
            }

            impl Endpoint for $name {
                type Request = body_type!($request);
                type Response = body_type!($response);
                const METHOD: Method = Method::$method;
                const PATH: &'static str = $path;
                const DANGER: Danger = Danger::$danger;
            }
        )+)+

        $(#[$doc])+
        #[derive(Debug)]
        pub struct $group;

        impl $group {
            /// Routes each to its handler. An endpoint without one does not compile here.
            pub fn router<S>() -> Router<S>
            where
                S: Clone + Send + Sync + 'static,
                $($($name: HasHandler<S>,)+)+
            {
                Router::new()$($(.route($name::PATH, <$name as HasHandler<S>>::handler().route))+)+
            }

            /// The facts of all these endpoints, without their types.
            pub const FACTS: &'static [Facts] = &[$($(Facts {
                method: $name::METHOD,
                path: $name::PATH,
                danger: $name::DANGER,
                id: stringify!($id),
                tag: $tag,
                summary: $summary,
                params: &[$($param),*],
                request: body_shape!($request),
                response: body_shape!($response),
            }),+),+];
        }
    };
}

const SERVICE: Param = Param::path("id", "UUID of the service");
const NAMED: Param =
    Param::path("name", "Name of a service, its UUID, or the first four or more digits of that");
const CHANNEL: Param = Param::path("id", "Channel");
const SETTLEMENT: Param = Param::path("id", "Number of the settlement").number();
const LANGUAGE: Param = Param::path("language", "One of /sdk/languages");
const LISTED: Param = Param::path("name", "As the list has it");
const SECRET: Param = Param::path("name", "`default`, or as it was made");
const MADE: Param = Param::path("name", "As it was made");
const FORCE: Param = Param::query("force", "Asks the chain at once, and not the owner first.").yes_no();
const WITH: Param = Param::query("with", "An owner's wallet, whose books are compared with this node's.");
const OFFLINE: Param =
    Param::query("offline", "The ledger alone: neither the chain nor an owner is asked.").yes_no();
const LIMIT: Param = Param::query("limit", "Of each side; at most 500").number();
const VERSION: Param = Param::query("version", "3.1 or 3.0");
const OPERATION_METHOD: Param = Param::query("method", "Of the operation").required();
const OPERATION_PATH: Param =
    Param::query("path", "Of the operation, as the service describes it").required();
const PACKAGE: Param = Param::query("package", "Name of the package");
const SINGLE_FILE: Param = Param::query("single_file", "Everything in one file").yes_no();
const FORM: Param = Param::query("form", "json or zip");
const KIND: Param =
    Param::query("kind", "bought, served, settlement, transaction, adjustment; several with commas");
const STATE: Param = Param::query("state", "charged, free, failed, pending, confirmed or lost");
const OF_SERVICE: Param = Param::query("service", "UUID");
const FROM: Param = Param::query("from", "First day (2026-11-21, UTC) or second (Unix time)");
const TO: Param = Param::query("to", "Last day, or the second after the last");
const STEP: Param = Param::query("limit", "50 unless given, at most 500").number();
const CURSOR: Param = Param::query("cursor", "`next` of the step before");
const AFTER: Param = Param::query("after", "`next` of the answer before").number();
const LEVEL: Param = Param::query("level", "error, warn, info, debug or trace: this weight and heavier ones");
const LINES: Param =
    Param::query("limit", "The newest so many; 200 unless given, and all with `after`").number();
const FROM_DAY: Param = Param::query("from", "First day (2026-11-21, UTC); the last 30 days unless given");
const TO_DAY: Param = Param::query("to", "Last day; today unless given");

endpoints! {
    /// What the node itself is asked and told.
    Commands {
        "Calls" {
            /// Buy one call; the answer is the service's own
            call: Call, POST "/call" []; (types::CallRequest) -> (raw), Low;
            /// The newest calls
            activity: Activity, GET "/activity" [LIMIT]; () -> (types::Activity), Low;
            /// What the newest calls amount to
            figures: Figures, GET "/figures" []; () -> (types::Figures), Low;
        }
        "Catalog" {
            /// Find services
            catalog_search: CatalogSearch, POST "/catalog/search" []; (types::CatalogQuery) -> (types::CatalogPage), Low;
            /// Services that a name, or the beginning of an id, stands for; 20 at most
            named_services: NamedServices, GET "/catalog/named/{name}" [NAMED]; () -> ([types::NamedService]), Low;
            /// A service of the network
            catalog_service: CatalogService, GET "/catalog/{id}" [SERVICE]; () -> (types::CatalogService), Low;
            /// The OpenAPI document of a service
            catalog_openapi: CatalogOpenapi, GET "/catalog/{id}/openapi.json" [SERVICE, VERSION]; () -> (raw), Low;
            /// Free samples of a service
            catalog_samples: CatalogSamples, GET "/catalog/{id}/samples" [SERVICE]; () -> (types::CatalogSamples), Low;
            /// The versions of a service, the newest first: as its owner tells them, and what this node saw beyond that
            catalog_versions: CatalogVersions, GET "/catalog/{id}/versions" [SERVICE]; () -> ([types::VersionNote]), Low;
            /// An operation of a service as a form to fill in
            catalog_form: CatalogForm, GET "/catalog/{id}/form" [SERVICE, OPERATION_METHOD, OPERATION_PATH]; () -> (types::CallForm), Low;
        }
        "Client code" {
            /// Languages that client code can be written in
            sdk_languages: SdkLanguages, GET "/sdk/languages" []; () -> ([types::sdk::SdkLanguage]), Low;
            /// Client code for a service, as JSON or as a ZIP archive
            sdk: Sdk, GET "/catalog/{id}/sdk/{language}" [SERVICE, LANGUAGE, PACKAGE, SINGLE_FILE, FORM]; () -> (types::sdk::Sdk), Low;
            /// Client code for a service, with templates of one's own
            sdk_with_templates: SdkWithTemplates, POST "/catalog/{id}/sdk/{language}" [SERVICE, LANGUAGE]; (types::sdk::SdkRequest) -> (types::sdk::Sdk), Low;
            /// One call as code that uses the client, in every language
            sdk_snippets: SdkSnippets, POST "/catalog/{id}/snippets" [SERVICE]; (types::sdk::SnippetRequest) -> ([types::sdk::Snippet]), Low;
        }
        "Money" {
            /// Services whose answers break their own description or that fail often, and what becomes of calls to them
            flagged_services: FlaggedServices, GET "/spending/flagged" []; () -> (types::FlaggedServices), Low;
            /// Say what becomes of calls to one service while it is flagged
            rule_flagged: RuleFlagged, POST "/spending/flagged" []; (types::FlagRequest) -> (types::FlaggedServices), High;
            /// Calls, transactions, settlements and adjustments, the newest first
            history: History, GET "/history" [KIND, STATE, OF_SERVICE, FROM, TO, STEP, CURSOR]; () -> (types::HistoryPage), Low;
            /// The same as CSV (RFC 4180), up to 20,000 lines
            history_csv: HistoryCsv, GET "/history.csv" [KIND, STATE, OF_SERVICE, FROM, TO]; () -> (raw), Low;
            /// The same as one list, up to 20,000 entries
            history_json: HistoryJson, GET "/history.json" [KIND, STATE, OF_SERVICE, FROM, TO]; () -> ([types::HistoryEntry]), Low;
            /// What each day came to, the earliest first
            history_days: HistoryDays, GET "/history/days" [FROM_DAY, TO_DAY]; () -> ([types::DayTotals]), Low;
            /// A settlement with the calls that it paid for
            settlement: Settlement, GET "/settlements/{id}" [SETTLEMENT]; () -> (types::SettlementShown), Low;
            /// Balances
            wallet: Wallet, GET "/wallet" []; () -> (types::WalletBalance), Low;
            /// Send USDC or ETH
            send: SendMoney, POST "/wallet/send" []; (types::SendRequest) -> (types::Sent), High;
            /// Payment channels
            channels: Channels, GET "/channels" []; () -> ([types::Channel]), Low;
            /// Open a channel with a service's owner
            open_channel: OpenChannel, POST "/channels" []; (types::OpenRequest) -> (types::Channel), High;
            /// Close a channel
            close_channel: CloseChannel, POST "/channels/{id}/close" [CHANNEL, FORCE]; () -> (types::Channel), High;
            /// Buy again from an owner whose channel was stopped, once that is empty
            resume_channel: ResumeChannel, POST "/channels/{id}/resume" [CHANNEL]; () -> (types::Channel), High;
            /// Claim what was earned
            settle: Settle, POST "/settle" []; () -> (types::Settled), Low;
            /// Whether the channel contract is on the node's chain, and with which code
            contract: Contract, GET "/contract" []; () -> (types::ContractShown), Low;
            /// What it costs to put the channel contract on the chain, at the gas price of now
            deployment_cost: DeploymentCost, GET "/contract/cost" []; () -> (types::DeploymentCost), Low;
            /// Put the channel contract on the chain; nothing is sent where it is already
            deploy_contract: DeployContract, POST "/contract" []; () -> (types::Deployed), High;
            /// What the node may spend, has spent today, and whether spending is stopped
            spending: Spending, GET "/spending" []; () -> (types::SpendingState), Low;
            /// Stop all spending, at once and over restarts; selling and settling go on
            stop_spending: StopSpending, POST "/spending/stop" []; () -> (types::SpendingState), Low;
            /// End a stop
            resume_spending: ResumeSpending, POST "/spending/resume" []; () -> (types::SpendingState), High;
            /// Change the limits while the node runs
            limit_spending: LimitSpending, POST "/spending/limits" []; (types::LimitsRequest) -> (types::SpendingState), High;
            /// Let calls of a service cost up to a price without naming it
            accept_price: AcceptPrice, POST "/spending/accept" []; (types::AcceptPrice) -> (types::AcceptPrice), High;
        }
        "Secrets" {
            /// The default secret
            secret: Secret, GET "/secret" []; () -> (types::Secret), High;
            /// Replace the default secret; the old one ends
            rotate_secret: RotateSecret, POST "/secret/rotate" []; () -> (types::Secret), High;
            /// Every secret with what its holder may do, without the secrets themselves
            secrets: Secrets, GET "/secrets" []; () -> ([types::SecretShown]), Low;
            /// Make a secret
            create_secret: CreateSecret, POST "/secrets" []; (types::NewSecret) -> (types::Secret), High;
            /// A secret
            named_secret: NamedSecret, GET "/secrets/{name}" [SECRET]; () -> (types::Secret), High;
            /// End a secret
            revoke_secret: RevokeSecret, DELETE "/secrets/{name}" [MADE]; () -> (types::SecretShown), High;
            /// Replace what the holder of a secret may do
            limit_secret: LimitSecret, POST "/secrets/{name}/limits" [MADE]; (types::SecretLimits) -> (types::SecretShown), High;
            /// Replace a secret; the old one ends
            rotate_named_secret: RotateNamedSecret, POST "/secrets/{name}/rotate" [SECRET]; () -> (types::Secret), High;
        }
        "My services" {
            /// Whether others have the listing of my service, and whether my server answers
            api_health: ApiHealth, GET "/apis/{id}/health" [SERVICE]; () -> (types::ListingHealth), Low;
            /// What a description offers, before anything is published
            inspect_api: InspectApi, POST "/apis/inspect" []; (types::InspectRequest) -> (types::Inspection), Low;
            /// A service as strangers would see it; nothing is published
            preview_api: PreviewApi, POST "/apis/preview" []; (types::ServiceFile) -> (types::ApiPreview), Low;
            /// One request to the server of a service that is not published yet
            try_api: TryApi, POST "/apis/try" []; (types::TryRequest) -> (types::Tried), High;
            /// My services
            apis: Apis, GET "/apis" []; () -> ([types::Api]), Low;
            /// Publish a service
            add_api: AddApi, POST "/apis" []; (types::ServiceFile) -> (types::Api), High;
            /// One of my services
            show_api: ShowApi, GET "/apis/{id}" [SERVICE]; () -> (types::ApiShown), Low;
            /// Read the description again
            rescan_api: RescanApi, POST "/apis/{id}/rescan" [SERVICE]; (types::RescanRequest) -> (types::Rescan), High;
            /// Change a service: texts, server, what is offered
            edit_api: EditApi, POST "/apis/{id}/edit" [SERVICE]; (types::EditRequest) -> (types::Edited), High;
            /// One request to the server of my service, as a paid call would make it; free
            test_api: TestApi, POST "/apis/{id}/test" [SERVICE]; (types::TestRequest) -> (types::Tested), High;
            /// The OpenAPI document of my service
            api_openapi: ApiOpenapi, GET "/apis/{id}/openapi.json" [SERVICE, VERSION]; () -> (raw), Low;
            /// The versions of my service, the newest first, each with what was different
            api_versions: ApiVersions, GET "/apis/{id}/versions" [SERVICE]; () -> ([types::VersionNote]), Low;
            /// Retire a service
            remove_api: RemoveApi, DELETE "/apis/{id}" [SERVICE]; () -> (types::Api), High;
            /// Change a price
            price_api: PriceApi, POST "/apis/{id}/price" [SERVICE]; (types::PriceRequest) -> (types::Api), Low;
            /// Refuse calls for now
            pause_api: PauseApi, POST "/apis/{id}/pause" [SERVICE]; () -> (types::Api), Low;
            /// Serve again
            resume_api: ResumeApi, POST "/apis/{id}/resume" [SERVICE]; () -> (types::Api), Low;
        }
        "Network" {
            /// Connected nodes
            peers: Peers, GET "/net/peers" []; () -> ([types::Peer]), Low;
            /// Measure the way to a node
            ping: Ping, POST "/net/ping" []; (types::PingRequest) -> (types::Pong), Low;
            /// Look for a node everywhere
            lookup: Lookup, POST "/net/lookup" []; (types::LookupRequest) -> (types::Lookup), Low;
            /// Whether others reach this node, as last tested
            reached: Reached, GET "/net/reach" []; () -> (types::Reach), Low;
            /// Test now whether others reach this node
            test_reach: TestReach, POST "/net/reach" []; () -> (types::Reach), Low;
            /// How much travels between this node and others
            traffic: Traffic, GET "/net/traffic" []; () -> (types::Traffic), Low;
        }
        "Node" {
            /// This document
            document: Document, GET "/openapi.json" []; () -> (raw), Low;
            /// What needs a person, each with its cause and what to do
            alerts: Alerts, GET "/alerts" []; () -> ([types::Alert]), Low;
            /// From when on alerts are raised, and whom they are told
            alert_levels: AlertLevels, GET "/alerts/levels" []; () -> (types::AlertLevels), Low;
            /// Change levels and webhook
            set_alert_levels: SetAlertLevels, POST "/alerts/levels" []; (types::AlertLevelsRequest) -> (types::AlertLevels), High;
            /// Tell the webhook the present alerts now, marked as a test
            test_alerts: TestAlerts, POST "/alerts/test" []; () -> (types::AlertLevels), Low;
            /// Make the secret that signs messages to the webhook, in place of the one before; it is shown once
            renew_alert_secret: RenewAlertSecret, POST "/alerts/secret" []; () -> (types::Secret), High;
            /// The invariants that the ledger and the contract show, and agreement with an owner's books
            audit: Audit, GET "/audit" [WITH, OFFLINE]; () -> (types::Audit), Low;
            /// The newest lines of the log, which the node keeps in memory
            logs: Logs, GET "/logs" [AFTER, LEVEL, LINES]; () -> (types::LogLines), Low;
            /// The node at a glance
            status: Status, GET "/status" []; () -> (types::Status), Low;
            /// Whether the node can buy and sell; 503 when not
            health: Health, GET "/health" []; () -> (types::Health), Low;
            /// Everything checked, each with what mends it
            doctor: Doctor, GET "/doctor" []; () -> (types::Doctor), Low;
        }
        "Backup" {
            /// Backups in the data folder, the newest first
            backups: Backups, GET "/backups" []; () -> ([types::Backup]), Low;
            /// Make a backup that the passphrase opens
            create_backup: CreateBackup, POST "/backups" []; (types::BackupRequest) -> (types::Backup), High;
            /// A backup, to be kept elsewhere
            backup: Backup, GET "/backups/{name}" [LISTED]; () -> (raw), High;
            /// Bring a backup from elsewhere, up to 64 MiB
            upload_backup: UploadBackup, POST "/backups/upload" []; (raw) -> (types::Backup), High;
            /// Open a backup and check everything in it
            verify_backup: VerifyBackup, POST "/backups/{name}/verify" [LISTED]; (types::BackupRequest) -> (types::BackupFacts), High;
            /// What the wallet can be had back from
            wallet_backup: WalletBackup, GET "/wallet/backup" []; () -> (types::WalletBackup), Low;
            /// The words that are the wallet
            phrase: Phrase, POST "/wallet/phrase" []; () -> (types::Phrase), High;
            /// Show that the phrase is written down, with some of its words
            check_phrase: CheckPhrase, POST "/wallet/phrase/check" []; (types::PhraseCheck) -> (types::WalletBackup), High;
            /// Whether a backup is made every day, the newest, the next, and what is wrong
            automatic_backups: AutomaticBackups, GET "/automatic-backups" []; () -> (types::AutomaticBackups), Low;
            /// Turn daily backups on or off, or change how many are kept
            set_automatic_backups: SetAutomaticBackups, POST "/automatic-backups" []; (types::AutomaticBackupsRequest) -> (types::AutomaticBackups), High;
            /// Make the daily backup now
            make_automatic_backup: MakeAutomaticBackup, POST "/automatic-backups/now" []; () -> (types::Backup), Low;
            /// Nodes that a restored one took the place of, whose files are kept
            replaced_nodes: ReplacedNodes, GET "/replaced-nodes" []; () -> ([types::ReplacedNode]), Low;
            /// Remove the files of a replaced node, its wallet too, for good
            remove_replaced_node: RemoveReplacedNode, DELETE "/replaced-nodes/{name}" [LISTED]; () -> (types::ReplacedNode), High;
        }
    }
}

endpoints! {
    /// What belongs to the process around the node: its settings, and how it starts again.
    Settings {
        "Node" {
            /// The settings that hold, each with its source; secrets are left out
            config: Config, GET "/config" []; () -> ([types::Setting]), Low;
            /// End running calls, then start again with the settings of now
            restart: Restart, POST "/restart" []; () -> (types::Restarting), High;
            /// How the chain is reached
            chain_settings: ChainSettings, GET "/chain/settings" []; () -> (types::ChainSettings), Low;
            /// Change how the chain is reached, from the next start on
            set_chain_settings: SetChainSettings, POST "/chain/settings" []; (types::ChainSettingsRequest) -> (types::ChainSettingsSaved), High;
        }
        "Backup" {
            /// Put the node of a backup in this one's place and restart
            restore_backup: RestoreBackup, POST "/backups/{name}/restore" [LISTED]; (types::BackupRequest) -> (types::Restoring), High;
        }
    }
}

endpoints! {
    /// What the console's port has beside the others: whoever may use the control socket needs no password.
    Session {
        "Session" {
            /// Choose the console's first password with the setup code; logs in as /session does
            set_up: SetUp, POST "/setup" []; (types::SetUp) -> (types::LoggedIn), Low;
            /// Log in: sets the cookie, and answers the key that every request has to carry as x-console-key
            log_in: LogIn, POST "/session" []; (types::LogIn) -> (types::LoggedIn), Low;
        }
    }
}

endpoints! {
    /// What the control socket alone has: whoever owns the machine finds the way back into the console there.
    Door {
        "Console" {
            /// Where the console is
            console: ShowConsole, GET "/console" []; () -> (types::Console), Low;
            /// Take the password away, and make a new setup code
            reset_console: ResetConsole, POST "/console/reset" []; () -> (types::Console), High;
        }
    }
}
