# `make` alone says what there is. Each target is a few lines here or one script in scripts/.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup demo run test pictures agree hostile soak lint bench load-cost load fidelity fuzz man deb deb-test image image-test

# For `make run`: further flags of berthd.
BERTHD_ARGS ?=
# For `make soak`.
KILLS ?= 1000

help: ## this list
	@echo 'Berth advises where to put tasks on a Linux host. New here? Start with: make demo'
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo 'More: README.md, docs/architecture.md'

setup: ## check Rust, install what the build lacks (apt packages, rustfmt, clippy); each other target does it by itself
	@scripts/setup.sh rust packages lints

demo: ## build, start berthd on this host, ask it about this host and about a 640-CPU one
	@scripts/setup.sh rust packages
	@scripts/demo.sh

run: ## build and start berthd on this host; its flags: make run BERTHD_ARGS='--help'
	@scripts/setup.sh rust packages
	cargo run --release --locked -p berthd -- $(BERTHD_ARGS)

test: ## format, clippy and all tests, with a real Slurm, helm and grpcurl; the last line counts them
	@scripts/setup.sh rust packages lints slurm stress tools
	@scripts/test.sh

hostile: ## what `make test` does to a running server of callers that mean harm, twenty times over
	@scripts/setup.sh rust packages
	BERTH_HOSTILE=long cargo test --release --locked -p berthd --test it -- hostile --nocapture

pictures: ## draw docs/pictures anew, as `berth map` draws them now
	@scripts/setup.sh rust packages
	BERTH_PICTURES=write cargo test --locked -p berth --test it -- --nocapture map::

agree: ## hold the model against the plain oracle on many random cases: make agree BERTH_CASES=100000
	@scripts/setup.sh rust packages
	BERTH_CASES=$${BERTH_CASES:-100000} cargo test --release --locked -p berth-model --test it -- --nocapture agree

soak: ## kill berthd a thousand times under sixteen clients (KILLS=n for another number); takes a quarter of an hour
	@scripts/setup.sh rust packages
	BERTH_KILLS=$(KILLS) cargo test --release --locked -p berthd --test it -- --nocapture kills::

fuzz: ## ten minutes of each fuzz target (FUZZ_SECONDS=600); needs a nightly compiler and cargo-fuzz
	@scripts/fuzz.sh

lint: ## format, clippy, documentation, and cargo-deny if it is installed
	@scripts/setup.sh rust packages lints
	@scripts/lint.sh

bench: ## time predict on a 640-CPU host beside a plain rescan of its CPUs
	@scripts/setup.sh rust packages
	cargo bench --locked -p berth-model --bench predict

load: ## a real berthd under load: rates beside Health/Check, latency, overload, memory, start (5 minutes)
	@scripts/setup.sh rust packages
	cargo bench --locked -p berthd --bench load

load-cost: ## what measuring the load costs with 20,000 live threads, and on 640 CPUs by a calculation (about 7 minutes)
	@scripts/setup.sh rust packages
	cargo build --release --locked -p berthd --bins --examples
	$${CARGO_TARGET_DIR:-target}/release/examples/load_cost

man: ## the manual pages, into man/ of the target folder
	@scripts/setup.sh rust packages
	@scripts/man.sh

deb: ## a Debian package with berthd, berth, the unit, manual pages and completions
	@scripts/setup.sh rust packages deb
	@scripts/deb.sh

deb-test: ## install that package on a fresh Debian (debootstrap; as root), ask it, upgrade it, and take it away again; lintian (5 minutes)
	@scripts/setup.sh rust packages deb deb-test
	@scripts/deb.sh
	@scripts/deb-test.sh

# What the crates, the chart and the image are called by.
VERSION := $(shell sed -n 's/^version *= *"\(.*\)"/\1/p' Cargo.toml)

image: ## the container image berth:VERSION, with Docker
	docker build --tag berth:$(VERSION) .

image-test: ## build the image without Docker and a registry (buildah, debootstrap; as root), run it, tell its size (5 minutes)
	@scripts/setup.sh rust packages image
	@scripts/image-test.sh

# For `make fidelity`: a folder with other records; further flags, such as -v.
RECORDS ?=
FLAGS ?=

fidelity: ## hold the model against records of real kernels, and print how well it does
	@scripts/setup.sh rust packages
	cargo run --locked -q -p berth-fidelity -- $(FLAGS) $(RECORDS)
