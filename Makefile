# apron's face. `make help` lists what there is; scripts/ and cargo do the work.

export AWS_LC_SYS_USE_SYSTEM = 0
FUZZ_SECONDS ?= 60
# Tests wait for servers half of their time.
TEST_THREADS ?= $(shell expr 2 \* $$(nproc))

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Build the example packages, push them to a real registry, pull them back, show them
	@scripts/setup demo
	@scripts/demo

.PHONY: test
test: ## Everything that must pass: formatting, lints, tests with real peers, fuzzing
	@scripts/tests clear && scripts/ci-times clear
	@scripts/ci-times step "set-up" scripts/setup test
	@scripts/ci-times step "the manual" scripts/docs
	cargo fmt --all --check
	@scripts/ci-times step "compiling, and the peers" scripts/alongside scripts/ci-times step "of that the peers" scripts/peers \
	  -- $(MAKE) --no-print-directory ready
	RUST_TEST_THREADS=$(TEST_THREADS) scripts/ci-times step "tests" scripts/tests run --workspace --exclude apron-sim --locked
	@scripts/ci-times step "the catalog's API by its document" env APRON_BINARY=$${CARGO_TARGET_DIR:-target}/debug/apron scripts/fuzz-api
	@scripts/ci-times step "simulation" $(MAKE) --no-print-directory sim
	@scripts/ci-times step "fuzzing" env FUZZ_SEED=1 scripts/fuzz $(FUZZ_SECONDS)
	@scripts/ci-times
	@scripts/advisories || echo "advisories: found above, or the database is old; \`make advisories\` fails for it"
	@scripts/tests untried
	@scripts/tests flaky

.PHONY: docs
docs: ## The manual, target/manual/index.html; links and spelling are checked
	@scripts/setup docs
	@scripts/docs

.PHONY: ready
ready: ## What `test` compiles, and its lints
	@scripts/ci-times step "of that lints" cargo clippy --workspace --all-targets --locked -- -D warnings
	@scripts/ci-times step "of that fuzz targets" scripts/fuzz build
	@scripts/ci-times step "of that tests" cargo test --workspace --locked --no-run

.PHONY: sim
sim: ## The package manager with a fault at every call (APRON_SIM: see CONTRIBUTING.md)
	scripts/tests run --workspace --test sim --locked -- --nocapture

.PHONY: check
check: ## The quick part of `test`: formatting, lints, tests of the rooms without peers
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	@scripts/fuzz build
	cargo test --workspace --lib

.PHONY: build
build: commit = $(or $(APRON_COMMIT),$(if $(wildcard .git),$(shell git describe --always --abbrev=40 --dirty --exclude='*')))
build: source_time = $(or $(SOURCE_DATE_EPOCH),$(if $(wildcard .git),$(shell git show -s --format=%ct HEAD)))
build: ## The binary that is shipped, target/dist/apron; `apron version -o json` tells the commit
	APRON_COMMIT='$(commit)' APRON_SOURCE_TIME='$(source_time)' cargo build --profile dist --locked -p apron

.PHONY: dist
dist: ## The files of a release, in dist/: archive, Debian package, image, chart, SBOM, checksums
	@scripts/setup dist
	@scripts/dist

.PHONY: install
install: prefix = $(DESTDIR)$(or $(PREFIX),/usr/local)
install: build ## Install apron, its manual pages and completions, and the link kubectl-crossplane, into PREFIX (/usr/local)
	install -D target/dist/apron $(prefix)/bin/apron
	ln -sf apron $(prefix)/bin/kubectl-crossplane
	target/dist/apron man $(prefix)/share/man/man1
	install -d $(prefix)/share/bash-completion/completions $(prefix)/share/zsh/site-functions $(prefix)/share/fish/vendor_completions.d \
		$(prefix)/share/nushell/vendor/autoload $(prefix)/share/pwsh/completions
	target/dist/apron completion bash >$(prefix)/share/bash-completion/completions/apron
	target/dist/apron completion zsh >$(prefix)/share/zsh/site-functions/_apron
	target/dist/apron completion fish >$(prefix)/share/fish/vendor_completions.d/apron.fish
	target/dist/apron completion nushell >$(prefix)/share/nushell/vendor/autoload/apron.nu
	target/dist/apron completion powershell >$(prefix)/share/pwsh/completions/_apron.ps1

.PHONY: bench
bench: ## Time and memory of apron beside upstream's CLI, on the same input in one run
	@scripts/setup bench
	@scripts/peers build crossplane
	@scripts/bench

.PHONY: bench-registry
bench-registry: build ## Requests, CPU and memory of apron's registry beside Debian's and distribution
	@scripts/setup bench
	@scripts/bench-registry

.PHONY: bench-solver
bench-solver: ## Time of the dependency solver on 500 packages of 20 versions
	@scripts/bench-solver

.PHONY: bench-catalog
bench-catalog: ## Time of the catalog's lookups and searches at scale, of reading 2,065 kinds, and of pushes beside it
	@scripts/bench-catalog

.PHONY: bench-apiserver
bench-apiserver: build ## Speed and memory of apron's API server beside etcd and kube-apiserver
	@scripts/setup bench
	@scripts/peers
	@scripts/bench-apiserver

.PHONY: bench-manager
bench-manager: build ## Install 2,065 CRDs with apron, with bare creates and with upstream's core
	@scripts/setup bench
	@scripts/peers
	cargo build --profile dist --locked -p apron-controller --example bare
	@scripts/bench-manager

.PHONY: bench-node
bench-node: build ## Time and memory of functions that run as programs of this machine
	@scripts/setup bench
	@scripts/peers build function-auto-ready
	@scripts/bench-node

.PHONY: fuzz
fuzz: ## Fuzz each target for FUZZ_SECONDS (60)
	@scripts/fuzz $(FUZZ_SECONDS)

.PHONY: fuzz-api
fuzz-api: ## Ask the catalog's API made-up questions by its own document, which is validated
	@scripts/setup test
	@scripts/fuzz-api

.PHONY: peers
peers: ## Build the peers that tests and benchmarks use
	@scripts/peers

.PHONY: advisories
advisories: ## Look dependencies up among known vulnerabilities, where cargo-deny and its database are there
	@scripts/advisories

.PHONY: fmt
fmt: ## Format the code
	cargo fmt --all

.PHONY: clean
clean: ## Remove what was built here (not the peers)
	cargo clean
	rm -rf fuzz/target
