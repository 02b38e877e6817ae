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
    Param::path("name", "Name of a service, its UUID, or the first four or more digits of the UUID");
const CHANNEL: Param = Param::path("id", "Channel");
const SETTLEMENT: Param = Param::path("id", "Number of the settlement").number();
const LANGUAGE: Param = Param::path("language", "Language, as listed by /sdk/languages");
const LISTED: Param = Param::path("name", "Name from the list");
const SECRET: Param = Param::path("name", "Name of the secret; `default` is the node's own");
const MADE: Param = Param::path("name", "Name of the secret");
const APPROVAL: Param = Param::path("id", "UUID of the approval");
const OWNER: Param = Param::path("wallet", "Wallet of the owner");
const SAVED: Param = Param::path("id", "UUID of the saved request");
const X402_SERVER: Param = Param::path("id", "UUID of the x402 server at this node");
const FORCE: Param = Param::query("force", "Closes on the chain without asking the owner first.").yes_no();
const WITH: Param = Param::query("with", "Wallet of an owner whose ledger is compared with this node's.");
const OFFLINE: Param =
    Param::query("offline", "Checks only the ledger, without asking the chain or an owner.").yes_no();
const LIMIT: Param = Param::query("limit", "Number of calls per side, at most 500").number();
const VERSION: Param = Param::query("version", "3.1 or 3.0");
const OPERATION_METHOD: Param = Param::query("method", "HTTP method of the operation").required();
const OPERATION_PATH: Param =
    Param::query("path", "Path of the operation, as the service describes it").required();
const PACKAGE: Param = Param::query("package", "Name of the package");
const SINGLE_FILE: Param = Param::query("single_file", "Writes everything into one file").yes_no();
const FORM: Param = Param::query("form", "json or zip");
const KIND: Param =
    Param::query("kind", "bought, served, settlement, transaction, adjustment; several with commas");
const STATE: Param = Param::query("state", "charged, free, failed, pending, confirmed, lost or returned");
const SIDE: Param = Param::query("side", "bought or served");
const OUTCOME: Param =
    Param::query("outcome", "under-way, answered, refused, timed-out, too-large, failed or undecided");
const BY_SECRET: Param = Param::query("secret", "Name of the secret that ordered it");
const CALL_ID: Param = Param::query("call_id", "UUID of the call");
const CALL_KEY: Param = Param::path("key", "`key` of a call in the log, or its call id");
const VERIFIED: Param = Param::query("verify", "Verifies the receipt.").yes_no();
const OF_SERVICE: Param = Param::query("service", "UUID");
const OF_PEER: Param = Param::query("with", "The other side's wallet");
const FROM: Param = Param::query("from", "First day (2026-11-21, UTC) or second (Unix time)");
const TO: Param = Param::query("to", "Last day, or the Unix second after the last one");
const STEP: Param = Param::query("limit", "Number of entries; by default 50, at most 500").number();
const CURSOR: Param = Param::query("cursor", "The `next` of the previous page");
const RANGE: Param = Param::query("range", "hour, day, week, month or year; by default week");
const OF_OWNER: Param = Param::query("owner", "Wallet of an owner: shows what was bought there");
const AFTER: Param = Param::query("after", "The `next` of the previous answer").number();
const LEVEL: Param =
    Param::query("level", "error, warn, info, debug or trace: this level and more severe ones");
const LINES: Param =
    Param::query("limit", "Number of newest lines; by default 200, or all with `after`").number();
const FROM_DAY: Param = Param::query("from", "First day (2026-11-21, UTC); by default 30 days ago");
const TO_DAY: Param = Param::query("to", "Last day; by default today");

endpoints! {
    /// What the node itself is asked and told.
    Commands {
        "Calls" {
            /// Buy one call; returns the service's own answer
            call: Call, POST "/call" []; (types::CallRequest) -> (raw), Low;
            /// List the newest calls
            activity: Activity, GET "/activity" [LIMIT]; () -> (types::Activity), Low;
            /// List the calls that reached this node: bought, served or refused, newest first
            calls: Calls, GET "/calls" [SIDE, OF_SERVICE, OUTCOME, BY_SECRET, CALL_ID, FROM, TO, STEP, CURSOR]; () -> (types::CallsPage), Low;
            /// Show one call with everything that is kept about it
            show_call: ShowCall, GET "/calls/{key}" [CALL_KEY, VERIFIED]; () -> (types::CallShown), Low;
            /// Cancel a call that is under way: this node waits for it no longer, and its caller gets a problem
            cancel_call: CancelCall, POST "/calls/{key}/cancel" [CALL_KEY]; () -> (types::CancelledCall), Low;
            /// Summarise the newest calls
            figures: Figures, GET "/figures" []; () -> (types::Figures), Low;
            /// Show calls and money over time up to now: for all services, one service or one owner
            series: Series, GET "/series" [RANGE, OF_SERVICE, OF_OWNER]; () -> (types::Series), Low;
            /// Show how many calls each of my services served over the same time
            served_series: ServedSeries, GET "/series/served" [RANGE]; () -> ([types::ServiceCalls]), Low;
        }
        "Catalog" {
            /// Search for services
            catalog_search: CatalogSearch, POST "/catalog/search" []; (types::CatalogQuery) -> (types::CatalogPage), Low;
            /// List services that match a name or the beginning of an id; at most 20
            named_services: NamedServices, GET "/catalog/named/{name}" [NAMED]; () -> ([types::NamedService]), Low;
            /// Show a service of the network
            catalog_service: CatalogService, GET "/catalog/{id}" [SERVICE]; () -> (types::CatalogService), Low;
            /// Get the OpenAPI document of a service
            catalog_openapi: CatalogOpenapi, GET "/catalog/{id}/openapi.json" [SERVICE, VERSION]; () -> (raw), Low;
            /// Show the free samples of a service
            catalog_samples: CatalogSamples, GET "/catalog/{id}/samples" [SERVICE]; () -> (types::CatalogSamples), Low;
            /// List the versions of a service, newest first: those that its owner reports and those that this node saw
            catalog_versions: CatalogVersions, GET "/catalog/{id}/versions" [SERVICE]; () -> ([types::VersionNote]), Low;
            /// Show an operation of a service as a form to fill in
            catalog_form: CatalogForm, GET "/catalog/{id}/form" [SERVICE, OPERATION_METHOD, OPERATION_PATH]; () -> (types::CallForm), Low;
            /// Show an operation of a service in full: its form, and the schemas of its parameters, body and answers
            catalog_reference: CatalogReference, GET "/catalog/{id}/reference" [SERVICE, OPERATION_METHOD, OPERATION_PATH]; () -> (types::OperationReference), Low;
        }
        "Starred services" {
            /// List the services that you starred, by name
            starred: Starred, GET "/starred" []; () -> ([types::StarredService]), Low;
            /// Star a service, or remove its star
            star_service: StarService, POST "/catalog/{id}/starred" [SERVICE]; (types::StarRequest) -> (types::StarredService), Low;
        }
        "Owners" {
            /// List the names that you gave to owners
            petnames: Petnames, GET "/petnames" []; () -> ([types::Petname]), Low;
            /// Give an owner a name that only your node knows, or remove it with an empty one
            give_petname: GivePetname, POST "/petnames/{wallet}" [OWNER]; (types::NewPetname) -> (types::Petname), Low;
        }
        "Saved requests" {
            /// List the saved requests of all services or of one, by name
            saved_requests: SavedRequests, GET "/saved-requests" [OF_SERVICE]; () -> ([types::SavedTitle]), Low;
            /// Save a request under a name, without secret values
            save_request: SaveRequest, POST "/saved-requests" []; (types::NewSavedRequest) -> (types::SavedRequest), Low;
            /// Show a saved request
            saved_request: SavedRequest, GET "/saved-requests/{id}" [SAVED]; () -> (types::SavedRequest), Low;
            /// Rename a saved request
            rename_saved_request: RenameSavedRequest, POST "/saved-requests/{id}/name" [SAVED]; (types::SavedName) -> (types::SavedTitle), Low;
            /// Delete a saved request
            remove_saved_request: RemoveSavedRequest, DELETE "/saved-requests/{id}" [SAVED]; () -> (types::SavedTitle), Low;
        }
        "x402 servers" {
            /// List the x402 servers that this node buys from
            x402_servers: X402Servers, GET "/x402/servers" []; () -> ([types::X402Server]), Low;
            /// Add an x402 server, whose paths can be called under the id that it gets
            add_x402_server: AddX402Server, POST "/x402/servers" []; (types::NewX402Server) -> (types::X402Server), High;
            /// Ask an x402 server what a GET costs at an address; nothing is paid
            ask_x402_server: AskX402Server, POST "/x402/terms" []; (types::X402Question) -> (types::X402Terms), Low;
            /// Remove an x402 server; the records of its calls stay
            remove_x402_server: RemoveX402Server, DELETE "/x402/servers/{id}" [X402_SERVER]; () -> (types::X402Server), Low;
        }
        "Client code" {
            /// List the languages for client code
            sdk_languages: SdkLanguages, GET "/sdk/languages" []; () -> ([types::sdk::SdkLanguage]), Low;
            /// Generate client code for a service, as JSON or as a ZIP archive
            sdk: Sdk, GET "/catalog/{id}/sdk/{language}" [SERVICE, LANGUAGE, PACKAGE, SINGLE_FILE, FORM]; () -> (types::sdk::Sdk), Low;
            /// Generate client code for a service with your own templates
            sdk_with_templates: SdkWithTemplates, POST "/catalog/{id}/sdk/{language}" [SERVICE, LANGUAGE]; (types::sdk::SdkRequest) -> (types::sdk::Sdk), Low;
            /// Show one call as client code, in every language
            sdk_snippets: SdkSnippets, POST "/catalog/{id}/snippets" [SERVICE]; (types::sdk::SnippetRequest) -> ([types::sdk::Snippet]), Low;
        }
        "Money" {
            /// List services that fail often or contradict their description, with the rule for their calls
            flagged_services: FlaggedServices, GET "/spending/flagged" []; () -> (types::FlaggedServices), Low;
            /// Set the rule for calls to one service while it is flagged
            rule_flagged: RuleFlagged, POST "/spending/flagged" []; (types::FlagRequest) -> (types::FlaggedServices), High;
            /// List calls, transactions, settlements and adjustments, newest first
            history: History, GET "/history" [KIND, STATE, OF_SERVICE, OF_PEER, FROM, TO, STEP, CURSOR]; () -> (types::HistoryPage), Low;
            /// Download the history as CSV (RFC 4180), up to 20,000 lines
            history_csv: HistoryCsv, GET "/history.csv" [KIND, STATE, OF_SERVICE, OF_PEER, FROM, TO]; () -> (raw), Low;
            /// Download the history as one list, up to 20,000 entries
            history_json: HistoryJson, GET "/history.json" [KIND, STATE, OF_SERVICE, OF_PEER, FROM, TO]; () -> ([types::HistoryEntry]), Low;
            /// Show the totals of each day, earliest first
            history_days: HistoryDays, GET "/history/days" [FROM_DAY, TO_DAY]; () -> ([types::DayTotals]), Low;
            /// Show a settlement and the calls it paid for
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
            /// Sign the request to close a channel, for anybody to send to the contract
            sign_close: SignClose, POST "/channels/{id}/close/signed" [CHANNEL]; () -> (types::SignedCloseRequest), High;
            /// Buy again from an owner after its stopped channel was emptied
            resume_channel: ResumeChannel, POST "/channels/{id}/resume" [CHANNEL]; () -> (types::Channel), High;
            /// Claim what was earned
            settle: Settle, POST "/settle" []; () -> (types::Settled), Low;
            /// Show whether the channel contract is on the node's chain, and its code
            contract: Contract, GET "/contract" []; () -> (types::ContractShown), Low;
            /// Show what it costs to deploy the channel contract at the current gas price
            deployment_cost: DeploymentCost, GET "/contract/cost" []; () -> (types::DeploymentCost), Low;
            /// Deploy the channel contract; sends nothing if it is already deployed
            deploy_contract: DeployContract, POST "/contract" []; () -> (types::Deployed), High;
            /// Show the spending limits, today's spending, and whether spending is stopped
            spending: Spending, GET "/spending" []; () -> (types::SpendingState), Low;
            /// Stop all spending now and after restarts; selling and settling continue
            stop_spending: StopSpending, POST "/spending/stop" []; () -> (types::SpendingState), Low;
            /// Allow spending again
            resume_spending: ResumeSpending, POST "/spending/resume" []; () -> (types::SpendingState), High;
            /// Change the limits while the node runs
            limit_spending: LimitSpending, POST "/spending/limits" []; (types::LimitsRequest) -> (types::SpendingState), High;
            /// Accept a price for all calls of a service
            accept_price: AcceptPrice, POST "/spending/accept" []; (types::AcceptPrice) -> (types::AcceptPrice), High;
        }
        "Secrets" {
            /// Show the default secret
            secret: Secret, GET "/secret" []; () -> (types::Secret), High;
            /// Replace the default secret; the old one stops working
            rotate_secret: RotateSecret, POST "/secret/rotate" []; () -> (types::Secret), High;
            /// List secrets with their limits, without the secrets themselves
            secrets: Secrets, GET "/secrets" []; () -> ([types::SecretShown]), Low;
            /// Create a secret
            create_secret: CreateSecret, POST "/secrets" []; (types::NewSecret) -> (types::Secret), High;
            /// A secret
            named_secret: NamedSecret, GET "/secrets/{name}" [SECRET]; () -> (types::Secret), High;
            /// Revoke a secret
            revoke_secret: RevokeSecret, DELETE "/secrets/{name}" [MADE]; () -> (types::SecretShown), High;
            /// Change the limits of a secret
            limit_secret: LimitSecret, POST "/secrets/{name}/limits" [MADE]; (types::SecretLimits) -> (types::SecretShown), High;
            /// Choose the services whose operations become tools of an agent that buys with this secret
            pin_services: PinServices, POST "/secrets/{name}/pins" [MADE]; (types::PinnedServices) -> (types::SecretShown), Low;
            /// Buy one call with a secret, within its limits; returns the service's own answer
            call_with_secret: CallWithSecret, POST "/secrets/{name}/call" [SECRET]; (types::CallRequest) -> (raw), Low;
            /// Note one call of an agent before it is bought; it gets the id of the same call whose answer has not arrived, if there is one
            begin_agent_call: BeginAgentCall, POST "/secrets/{name}/agent-calls" [SECRET]; (types::CallRequest) -> (types::AgentCall), Low;
            /// End one call of an agent, which has the answer: the same request is a new call then
            end_agent_call: EndAgentCall, POST "/secrets/{name}/agent-calls/end" [SECRET]; (types::EndedAgentCall) -> (types::AgentCall), Low;
            /// Ask the user to approve one call of an agent; if the user approved it, its approval ends with this answer
            ask_approval: AskApproval, POST "/secrets/{name}/approvals" [SECRET]; (types::ApprovalRequest) -> (types::Approval), Low;
            /// List calls of agents that wait for approval or were decided lately, newest first
            approvals: Approvals, GET "/approvals" []; () -> ([types::Approval]), Low;
            /// Approve one call of an agent, once, for ten minutes
            approve_call: ApproveCall, POST "/approvals/{id}/approve" [APPROVAL]; () -> (types::Approval), High;
            /// Refuse one call of an agent
            refuse_call: RefuseCall, POST "/approvals/{id}/refuse" [APPROVAL]; () -> (types::Approval), Low;
            /// Replace a secret; the old one stops working
            rotate_named_secret: RotateNamedSecret, POST "/secrets/{name}/rotate" [SECRET]; () -> (types::Secret), High;
        }
        "My services" {
            /// Check whether other nodes have my service's listing, and whether my server answers
            api_health: ApiHealth, GET "/apis/{id}/health" [SERVICE]; () -> (types::ListingHealth), Low;
            /// Preview what a description offers; publishes nothing
            inspect_api: InspectApi, POST "/apis/inspect" []; (types::InspectRequest) -> (types::Inspection), Low;
            /// Preview a service as others would see it; publishes nothing
            preview_api: PreviewApi, POST "/apis/preview" []; (types::ServiceFile) -> (types::ApiPreview), Low;
            /// Send one request to the server of a service that is not published yet
            try_api: TryApi, POST "/apis/try" []; (types::TryRequest) -> (types::Tried), High;
            /// My services
            apis: Apis, GET "/apis" []; () -> ([types::Api]), Low;
            /// Publish a service
            add_api: AddApi, POST "/apis" []; (types::ServiceFile) -> (types::Api), High;
            /// One of my services
            show_api: ShowApi, GET "/apis/{id}" [SERVICE]; () -> (types::ApiShown), Low;
            /// Read the description again
            rescan_api: RescanApi, POST "/apis/{id}/rescan" [SERVICE]; (types::RescanRequest) -> (types::Rescan), High;
            /// Change a service's texts, server or operations
            edit_api: EditApi, POST "/apis/{id}/edit" [SERVICE]; (types::EditRequest) -> (types::Edited), High;
            /// Send my own server one request, as a paid call would; free
            test_api: TestApi, POST "/apis/{id}/test" [SERVICE]; (types::TestRequest) -> (types::Tested), High;
            /// Get the OpenAPI document of my service
            api_openapi: ApiOpenapi, GET "/apis/{id}/openapi.json" [SERVICE, VERSION]; () -> (raw), Low;
            /// List the versions of my service, newest first, with what changed in each
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
            /// Measure the round-trip time to a node
            ping: Ping, POST "/net/ping" []; (types::PingRequest) -> (types::Pong), Low;
            /// Look up a node
            lookup: Lookup, POST "/net/lookup" []; (types::LookupRequest) -> (types::Lookup), Low;
            /// Show the last test of whether other nodes can connect to this one
            reached: Reached, GET "/net/reach" []; () -> (types::Reach), Low;
            /// Test now whether other nodes can connect to this one
            test_reach: TestReach, POST "/net/reach" []; () -> (types::Reach), Low;
            /// Show bytes sent to and received from other nodes
            traffic: Traffic, GET "/net/traffic" []; () -> (types::Traffic), Low;
            /// Show the bytes sent to other nodes and received from them, over time up to now
            traffic_series: TrafficSeries, GET "/net/traffic/series" [RANGE]; () -> (types::TrafficSeries), Low;
        }
        "Node" {
            /// This document
            document: Document, GET "/openapi.json" []; () -> (raw), Low;
            /// List alerts, each with its cause and what to do
            alerts: Alerts, GET "/alerts" []; () -> ([types::Alert]), Low;
            /// Show the alert levels and the webhook
            alert_levels: AlertLevels, GET "/alerts/levels" []; () -> (types::AlertLevels), Low;
            /// Change the alert levels and the webhook
            set_alert_levels: SetAlertLevels, POST "/alerts/levels" []; (types::AlertLevelsRequest) -> (types::AlertLevels), High;
            /// Send the current alerts to the webhook now, marked as a test
            test_alerts: TestAlerts, POST "/alerts/test" []; () -> (types::AlertLevels), Low;
            /// Create a new secret that signs messages to the webhook; it replaces the old one and is shown once
            renew_alert_secret: RenewAlertSecret, POST "/alerts/secret" []; () -> (types::Secret), High;
            /// Check the invariants of the ledger and the contract, and compare with an owner's ledger
            audit: Audit, GET "/audit" [WITH, OFFLINE]; () -> (types::Audit), Low;
            /// Show the newest log lines that the node keeps in memory
            logs: Logs, GET "/logs" [AFTER, LEVEL, LINES]; () -> (types::LogLines), Low;
            /// Show the node's state
            status: Status, GET "/status" []; () -> (types::Status), Low;
            /// Tell whether the node can buy and sell; 503 if not
            health: Health, GET "/health" []; () -> (types::Health), Low;
            /// Check everything the node needs
            doctor: Doctor, GET "/doctor" []; () -> (types::Doctor), Low;
        }
        "Backup" {
            /// List the backups in the data folder, newest first
            backups: Backups, GET "/backups" []; () -> ([types::Backup]), Low;
            /// Create a backup, encrypted with the passphrase
            create_backup: CreateBackup, POST "/backups" []; (types::BackupRequest) -> (types::Backup), High;
            /// Download a backup
            backup: Backup, GET "/backups/{name}" [LISTED]; () -> (raw), High;
            /// Upload a backup, up to 64 MiB
            upload_backup: UploadBackup, POST "/backups/upload" []; (raw) -> (types::Backup), High;
            /// Open a backup and check its contents
            verify_backup: VerifyBackup, POST "/backups/{name}/verify" [LISTED]; (types::BackupRequest) -> (types::BackupFacts), High;
            /// Show how the wallet can be restored
            wallet_backup: WalletBackup, GET "/wallet/backup" []; () -> (types::WalletBackup), Low;
            /// Show the wallet's backup phrase
            phrase: Phrase, POST "/wallet/phrase" []; () -> (types::Phrase), High;
            /// Confirm with some of its words that the phrase is written down
            check_phrase: CheckPhrase, POST "/wallet/phrase/check" []; (types::PhraseCheck) -> (types::WalletBackup), High;
            /// Show whether daily backups are on, the newest and next backup, and any problem
            automatic_backups: AutomaticBackups, GET "/automatic-backups" []; () -> (types::AutomaticBackups), Low;
            /// Turn daily backups on or off, or change how many are kept
            set_automatic_backups: SetAutomaticBackups, POST "/automatic-backups" []; (types::AutomaticBackupsRequest) -> (types::AutomaticBackups), High;
            /// Create the daily backup now
            make_automatic_backup: MakeAutomaticBackup, POST "/automatic-backups/now" []; () -> (types::Backup), Low;
            /// List replaced nodes; restoring a backup keeps the files of the node it replaces
            replaced_nodes: ReplacedNodes, GET "/replaced-nodes" []; () -> ([types::ReplacedNode]), Low;
            /// Permanently remove the files of a replaced node, including its wallet
            remove_replaced_node: RemoveReplacedNode, DELETE "/replaced-nodes/{name}" [LISTED]; () -> (types::ReplacedNode), High;
        }
    }
}

endpoints! {
    /// What belongs to the process around the node: its settings, and how it starts again.
    Settings {
        "Node" {
            /// List the settings in use and where each comes from, without secrets
            config: Config, GET "/config" []; () -> ([types::Setting]), Low;
            /// Finish running calls, then restart with the current settings
            restart: Restart, POST "/restart" []; () -> (types::Restarting), High;
            /// Show the chain's endpoints and confirmations
            chain_settings: ChainSettings, GET "/chain/settings" []; () -> (types::ChainSettings), Low;
            /// Change the chain's endpoints and confirmations; takes effect at the next start
            set_chain_settings: SetChainSettings, POST "/chain/settings" []; (types::ChainSettingsRequest) -> (types::ChainSettingsSaved), High;
        }
        "Backup" {
            /// Replace this node with the node of a backup, and restart
            restore_backup: RestoreBackup, POST "/backups/{name}/restore" [LISTED]; (types::BackupRequest) -> (types::Restoring), High;
        }
    }
}

endpoints! {
    /// What the console's port has beside the others: whoever may use the control socket needs no password.
    Session {
        "Session" {
            /// Set the console's first password with the setup code; logs in like /session
            set_up: SetUp, POST "/setup" []; (types::SetUp) -> (types::LoggedIn), Low;
            /// Log in: sets the cookie and returns the key that every request must send as x-console-key
            log_in: LogIn, POST "/session" []; (types::LogIn) -> (types::LoggedIn), Low;
        }
    }
}

endpoints! {
    /// What the control socket alone has: whoever owns the machine finds the way back into the console there.
    Door {
        "Console" {
            /// Show the console's address
            console: ShowConsole, GET "/console" []; () -> (types::Console), Low;
            /// Remove the password and create a new setup code
            reset_console: ResetConsole, POST "/console/reset" []; () -> (types::Console), High;
        }
    }
}
