# The commands of this repository; `make help` lists them.
#
# Everything is built with `--workspace`: cargo chooses the features of dependencies by what is selected, so a
# selection of one package would compile many of them a second time. For the same reason programs are started
# from the target folder rather than with `cargo run`.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Where cargo puts programs; it knows about CARGO_TARGET_DIR and its own configuration.
programs = $$(cargo metadata --no-deps --offline --format-version 1 | sed -E 's/.*"target_directory":"([^"]*)".*/\1/')/debug
# The optimised ones, which are measured. Those that are shipped take longer to build: deploy/build.sh.
optimised = $$(dirname "$(programs)")/release
npm_installed := tests/contracts/node_modules/.package-lock.json
forge_from_npm := tests/contracts/proof/node_modules/.package-lock.json
halmos_from_pypi := tests/contracts/proof/.venv/.installed
tools_from_npm := tests/tools/node_modules/.package-lock.json
tools_from_pypi := tests/tools/.venv/.installed
# Each needs another version of the same package.
frameworks_from_pypi := $(patsubst %,tests/tools/%/.venv/.installed,langchain llamaindex)
wheels := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/farthing/wheels
sdk_from_npm := tests/sdk/node_modules/.package-lock.json
sdk_from_pypi := tests/sdk/.venv/.installed
x402_from_npm := tests/x402/node_modules/.package-lock.json
x402_from_pypi := tests/x402/.venv/.installed
scripts = .ci/run $$(find deploy tests -name '*.sh' -not -path '*/node_modules/*' -not -path '*/.venv/*')

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' Makefile

.PHONY: demo
demo: anvil build ## Buy earthquake data from another node, pay per call, settle on a local chain; no configuration needed
	"$(programs)/farthing" testnet demo --report target/demo/report.json

.PHONY: testnet
testnet: anvil build ## Keep the nodes of the demo running, with commands to paste; stop with Ctrl-C
	"$(programs)/farthing" testnet up

.PHONY: test
# Whole nodes wait more than they work: for blocks, for each other, for the two minutes that a doubt has to last. So more of them
# run than there are cores, and compilers beside them.
test: node-deps tools-deps sdk-deps x402-deps ## Run all tests: pure rules, adapters, contracts on a real chain, whole nodes
	cargo build --workspace --all-targets --locked
	export RUST_TEST_THREADS="$${RUST_TEST_THREADS:-$$(($$(nproc) + 2))}"; \
	cargo test --workspace --locked --no-run --message-format=json-render-diagnostics | \
		node tests/suites.mjs "cargo test --workspace --locked --doc"

.PHONY: mutants
mutants: node-deps tools-deps sdk-deps x402-deps ## Break the lines that keep promises, and check that a test fails for each; takes hours; GROUP=A1 runs one group
	tests/mutants/run.py $(if $(GROUP),--group "$(GROUP)")

.PHONY: contract-proof
contract-proof: node-deps forge-deps $(halmos_from_pypi) ## Play random histories of the contract in forge, and prove its rules in halmos; SEED=, RUNS= and PROOF= choose others
	tests/contracts/proof/prove.sh

# So many SCHEDULES of each of two kinds for each model, in other orders each time.
.PHONY: models
models: ## Try the orders of threads and tasks in the parts that share something; SCHEDULES= chooses how many, 50,000 unless said: a few minutes
	SCHEDULES="$(or $(SCHEDULES),50000)" cargo test --workspace --test models --locked

.PHONY: nat-test
nat-test: anvil ## Run only the NAT laboratory: whole nodes behind routers in network namespaces; three minutes, needs root
	cargo build --workspace --all-targets --locked
	cargo test --workspace --test nat --locked

.PHONY: browser-test
browser-test: anvil tools-deps build ## Run only the tests of the console in Chromium: axe-core checks every page; pictures in target/screenshots
	PICTURES=1 cargo test --workspace --test browser --locked

.PHONY: full-test
full-test: build ## Run only the test of the console on a full node, with CALLS calls of history, a million unless said; takes minutes
	FARTHING_FULL_CALLS="$(or $(CALLS),1000000)" cargo test --workspace --test console --locked -- --nocapture full::

.PHONY: sdk-test
sdk-test: anvil sdk-deps build ## Test client code in every language: compile it strictly and make paid calls
	cargo test --workspace --test sdk --locked

.PHONY: check
check: lint check-files ## Check formatting, lints, licences and banned dependencies, shell syntax, the hardening of the systemd unit

.PHONY: lint
lint:
	cargo clippy --workspace --all-targets --locked -- -D warnings

.PHONY: check-files
check-files: ## Run the checks of `make check` that compile nothing
	cargo fmt --all --check
	cargo fmt --check --manifest-path tests/x402/rust/Cargo.toml
	@if command -v cargo-deny >/dev/null; then \
		cargo deny --locked check licenses bans sources; \
	else \
		printf '\n  SKIPPED: licences and banned dependencies, because cargo-deny is not installed.\n  Install it with: cargo install --locked cargo-deny\n\n' >&2; \
	fi
	for script in $(scripts); do bash -n "$$script"; done
	@if command -v systemd-analyze >/dev/null; then \
		systemd-analyze security --no-pager --offline=true --threshold=15 deploy/farthing.service >/dev/null; \
	else \
		printf '\n  SKIPPED: the hardening of deploy/farthing.service, because systemd-analyze is not installed.\n\n' >&2; \
	fi

.PHONY: bench
bench: anvil build-optimised ## Measure paid calls, direct calls and calls through two TLS proxies, the bridge, search, pages and idle traffic; writes target/bench/report.json
	"$(optimised)/farthing-bench"
	"$(optimised)/farthing-pages"
	"$(optimised)/farthing-simulate" catalog --listings 20000 --searches 300
	"$(optimised)/farthing-simulate" idle
	cargo bench --locked -p farthing-bridge -p farthing-sdk

.PHONY: lab
lab: anvil build ## Measure relayed and punched calls, and idle nodes, in the NAT laboratory; half an hour, needs root; writes target/lab/report.json
	"$(programs)/farthing-lab"

.PHONY: profile
profile: anvil build-optimised ## Show processor time by part of the program while 64 callers buy; needs perf
	"$(optimised)/farthing-bench" profile

.PHONY: soak
soak: anvil build-optimised ## Run 20 nodes for an hour with kills, outages and strangers; fails if books differ or something grows; NODES=, MINUTES= and RATE= choose others
	"$(optimised)/farthing-bench" soak $(if $(NODES),--nodes "$(NODES)") $(if $(MINUTES),--minutes "$(MINUTES)") \
		$(if $(RATE),--rate "$(RATE)")

.PHONY: build-optimised
build-optimised: # Unlike a release, it has the clock and the endpoints that tests play: what measures is built with patched nodes.
	cargo build --release --workspace --bins --locked

# Where the local chain's program is.
anvil_program = $${FARTHING_ANVIL:-$$(command -v anvil || echo tests/contracts/node_modules/@foundry-rs/anvil-linux-*/bin/anvil)}

# The engine's own builder skips what an image does not need, and keeps what cargo has built for the next image. Clients
# from 23 on have it as a component of its own.
image_build = DOCKER_BUILDKIT=1 docker build --file deploy/Dockerfile
define can_build_images
	@[[ "$$(docker version --format '{{.Client.Version}}' 2>/dev/null | cut -d. -f1)" -lt 23 ]] || docker buildx version >/dev/null 2>&1 || { \
		printf '\n  This docker cannot build images: its buildx component is missing. Install it (Debian: apt-get install\n  docker-buildx, elsewhere docker-buildx-plugin), or use programs that are built here: make compose-up PREBUILT=1\n\n' >&2; \
		exit 1; \
	}
endef
testnet_compose = $$(docker compose version >/dev/null 2>&1 && echo docker compose || echo docker-compose) \
	--project-name farthing-testnet --file deploy/compose.testnet.yaml

.PHONY: image
image: ## Build the container image `farthing`; choose other base images with docker's build arguments: IMAGE_ARGS=…
	$(can_build_images)
	$(image_build) $(IMAGE_ARGS) --tag farthing .

.PHONY: images
images: image
	$(image_build) $(IMAGE_ARGS) --target testnet --tag farthing-testnet .

.PHONY: images-prebuilt
images-prebuilt: anvil build
	deploy/prebuilt-images.sh "$(programs)" "$(anvil_program)" farthing farthing-testnet

# The most bytes that a program may have which is shipped, without symbols.
BYTES_MAX ?= 50000000
# What the image of a release is built over.
BASE_IMAGE ?= $(shell sed -n 's/^ARG BASE_IMAGE=//p' deploy/Dockerfile)

.PHONY: dist
dist: ## Pack a release into target/dist: archive, .deb, bill of materials, checksums, and an image if docker runs; TARGET=aarch64-unknown-linux-gnu
	@target="$${TARGET:-$$(rustc -vV | sed -n 's/^host: //p')}"; base=(); \
	if docker version >/dev/null 2>&1; then \
		base=(--base "$(BASE_IMAGE)"); \
	else \
		printf '\n  SKIPPED: the container image, because docker does not run.\n\n' >&2; \
	fi; \
	programs="$$(FARTHING_COMMIT="$$(git rev-parse --short HEAD)" TARGET="$$target" deploy/build.sh farthing)"; \
	BYTES_MAX="$(BYTES_MAX)" deploy/dist.sh "$${base[@]}" "$$target" "$$programs/farthing" target/dist

.PHONY: dist-test
dist-test: anvil tools-deps build ## Test the files of a release: build them from the development build, then install, sell with and remove them in a clean Debian; needs root and debootstrap
	deploy/test/dist-test.sh "$(programs)"

.PHONY: arm64-test
arm64-test: anvil ## Test an arm64 node that is built here and runs in qemu: it sells and buys; the first run takes as long as a full build
	cargo build --workspace --all-targets --locked
	deploy/test/arm64-test.sh

.PHONY: compose-up
compose-up: $(if $(PREBUILT),images-prebuilt,images) ## Start a network of five nodes with its own chain in containers; PREBUILT=1 needs no registry
	$(testnet_compose) up --detach
	@until $(testnet_compose) exec -T setup farthing testnet prepare --check; do sleep 2; done
	$(testnet_compose) logs --no-color setup

.PHONY: compose-down
compose-down: ## Stop that network and delete it, with its wallets
	$(testnet_compose) down --volumes

.PHONY: compose-test
compose-test: anvil build ## Test that network: build it, buy from it, kill it, restart it; needs docker, or root with dockerd; works offline
	deploy/test/compose-test.sh "$(programs)" "$(anvil_program)"

.PHONY: simulate
simulate: anvil ## Simulate the directory of 10,000 nodes in virtual time, a network of 100 nodes, and a catalog of 100,000 listings; writes target/simulate/report.json
	cargo build --workspace --bins --locked
	"$(programs)/farthing-simulate" directory
	"$(programs)/farthing-simulate" catalog
	"$(programs)/farthing-simulate" node
	"$(programs)/farthing-simulate" news
	"$(programs)/farthing-simulate" network --nodes 100 --gossiping 60 --lookups 100

# HISTORIES of each simulation, from SEED on: the next part begins where the last one ended. WORLDS chooses simulations by their names.
.PHONY: world
world: anvil ## Play 10,000 histories of both nodes in each simulated world, and print which; HISTORIES=, SEED= and WORLDS= choose others
	FARTHING_SEEDS="$(or $(HISTORIES),10000)" FARTHING_FIRST_SEED="$(or $(SEED),0)" \
		cargo test --workspace --test simulation --locked -- --nocapture \
		$(or $(WORLDS),honest_nodes_agree halves::real_halves_agree settled::both_nodes_leave)

# N inputs for each of TARGETS, or for all targets, from number SEED on, for SECONDS each at most.
.PHONY: fuzz
fuzz: build ## Give everything that reads strangers' bytes N broken inputs, a million unless said; SEED=, SECONDS= and TARGETS= choose others
	"$(programs)/farthing-fuzz" --inputs "$(or $(N),1000000)" --seed "$(or $(SEED),0)" \
		$(if $(SECONDS),--seconds "$(SECONDS)") $(TARGETS)

.PHONY: contracts
contracts: node-deps ## Compile the contracts and write their artifacts into protocol/contracts
	npm run --prefix tests/contracts build

.PHONY: node-deps
node-deps: $(npm_installed) ## Install the pinned solc and anvil into tests/contracts (the tests need both)

$(npm_installed): tests/contracts/package.json tests/contracts/package-lock.json tests/contracts/.npmrc tests/contracts/pinned.mjs
	node tests/contracts/pinned.mjs
	npm ci --prefix tests/contracts
	touch $@

# Only for histories of the contract in forge. It is 81 MB, so `make test` does not ask for it, and images that need the local
# chain do not get it.
.PHONY: forge-deps
forge-deps: $(forge_from_npm) ## Install the pinned forge into tests/contracts/proof; with it, the contract tests also play histories there

$(forge_from_npm): tests/contracts/proof/package.json tests/contracts/proof/package-lock.json tests/contracts/proof/.npmrc
	npm ci --prefer-offline --prefix tests/contracts/proof
	touch $@

.PHONY: tools-deps
tools-deps: $(tools_from_npm) $(tools_from_pypi) $(frameworks_from_pypi) ## Install pinned validators of other projects into tests/tools

$(tools_from_npm): tests/tools/package.json tests/tools/package-lock.json tests/tools/.npmrc
	npm ci --prefer-offline --prefix tests/tools
	touch $@

# People without Python lose only the tests that need it, which then say so. CI must not lose any.
# What was downloaded once is installed without asking anybody. The two arguments: the folder, and which tests these are.
define install_from_pypi
	@pip() { $(1)/.venv/bin/pip --quiet --disable-pip-version-check "$$@"; }; \
	install() { pip install --require-hashes --no-index --find-links "$(wheels)" --requirement $(1)/requirements.txt; }; \
	if python3 -m venv --clear $(1)/.venv && \
		{ install 2>/dev/null || { pip download --require-hashes --dest "$(wheels)" --requirement $(1)/requirements.txt && install; }; }; then \
		touch $@; \
	elif [[ -n "$${CI:-}" ]]; then \
		exit 1; \
	else \
		printf '\n  SKIPPED: $(2), because they could not be installed.\n  They need python3 (3.11 or newer) with venv: apt-get install python3-venv\n\n' >&2; \
	fi
endef

$(tools_from_pypi): tests/tools/requirements.txt
	$(call install_from_pypi,tests/tools,tests by tools from PyPI)

$(frameworks_from_pypi): tests/tools/%/.venv/.installed: tests/tools/%/requirements.txt
	$(call install_from_pypi,tests/tools/$*,the example of a framework for agents ($*))

.PHONY: x402-deps
x402-deps: $(x402_from_npm) $(x402_from_pypi) x402-programs ## Install pinned clients and servers of x402 into tests/x402, and build those in Rust

# They are no part of our workspace (tests/x402/rust/Cargo.toml says why), so they have a folder of their own among its built files.
.PHONY: x402-programs
x402-programs:
	cargo build --locked --manifest-path tests/x402/rust/Cargo.toml --target-dir "$$(dirname "$(programs)")/x402"

$(x402_from_npm): tests/x402/package.json tests/x402/package-lock.json tests/x402/.npmrc
	npm ci --prefer-offline --prefix tests/x402
	touch $@

$(x402_from_pypi): tests/x402/requirements.txt
	$(call install_from_pypi,tests/x402,calls by and of the Python packages of x402)

$(halmos_from_pypi): tests/contracts/proof/requirements.txt
	$(call install_from_pypi,tests/contracts/proof,proofs of the contract)

.PHONY: sdk-deps
sdk-deps: $(sdk_from_npm) $(sdk_from_pypi) ## Install pinned compilers for the languages of client code into tests/sdk

$(sdk_from_npm): tests/sdk/package.json tests/sdk/package-lock.json tests/sdk/.npmrc
	npm ci --prefer-offline --prefix tests/sdk
	touch $@

$(sdk_from_pypi): tests/sdk/requirements.txt
	$(call install_from_pypi,tests/sdk,client code in some languages)

# The local chain: the one on the PATH, or the pinned one.
.PHONY: anvil
anvil:
	@command -v anvil >/dev/null || $(MAKE) --no-print-directory node-deps

.PHONY: build
build:
	cargo build --workspace --bins --locked
