# The extension, built with PGXS on top of the static library that CMake makes.
#   make && make install          with PG_CONFIG=... for another server than the default
#   make help                     the other targets
EXTENSION  = pg_kmeans
MODULE_big = pg_kmeans
OBJS       = $(patsubst %.cpp,%.o,$(wildcard src/pg/*.cpp src/pg/*/*.cpp))
DATA       = $(wildcard sql/pg_kmeans--*.sql)

# The same list as scripts/regress runs: every script in sql/ that is not the extension's.
REGRESS      = $(sort $(patsubst sql/%.sql,%,$(filter-out $(DATA),$(wildcard sql/*.sql))))
REGRESS_OPTS = --load-extension=pg_kmeans

BUILD  = build
WERROR = $(if $(filter ON,$(PGKM_WERROR)),-Werror)

# Server headers count as system headers: their warnings are not ours to fix. What the
# library exports is told by exports.map and not by visibility attributes, since before
# version 16 the server's macros do not mark the SQL functions. Some of those macros count by ++ on
# volatile variables, of which clang warns.
SERVER_INCLUDE = $(shell $(PG_CONFIG) --includedir-server)
PG_CPPFLAGS = -Isrc -isystem $(shell $(PG_CONFIG) --includedir) -isystem $(SERVER_INCLUDE)
PG_CXXFLAGS = -std=c++20 -ffp-contract=off -Wall -Wextra -Wno-deprecated-volatile $(WERROR) -MMD -MP
LIBRARY     = $(BUILD)/libpgkm.a
SHLIB_LINK  = $(LIBRARY) $$(cat $(BUILD)/link.txt) $(libpq) -lstdc++ -lpthread -ldl -Wl,--version-script=exports.map
EXTRA_CLEAN = build $(BUILD) $(OBJS:.o=.d)

# Bitcode would buy nothing for numeric C++ and need a clang.
override with_llvm = no

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs 2>/dev/null)
export PG_CONFIG

ifneq ($(wildcard $(PGXS)),)
include $(PGXS)

$(shlib): $(LIBRARY) build/linked exports.map
$(OBJS): build/server
all: cuda-plugin
install: strip-installed
-include $(OBJS:.o=.d)
else
all install installcheck clean:
	@echo "no PostgreSQL server headers ($(PG_CONFIG) --pgxs): run scripts/setup, or set PG_CONFIG" >&2; exit 1
endif

# CMake knows best what is out of date; the archive's time changes only when it is rewritten.
$(LIBRARY): configure
	+@cmake --build $(BUILD) --target pgkm -- --no-print-directory

configure:
	@scripts/configure $(BUILD)

# Which library the extension was linked with last; scripts/ have one of their own.
build/linked: configure $(LIBRARY)
	@echo '$(LIBRARY)' | cmp -s - $@ || { mkdir -p build && echo '$(LIBRARY)' >$@; }

# Which server the objects were compiled for last: those of another one are of no use.
build/server: configure
	@echo '$(VERSION) $(SERVER_INCLUDE)' | cmp -s - $@ || { mkdir -p build && echo '$(VERSION) $(SERVER_INCLUDE)' >$@; }

# A plugin of the GPU, apart from the extension: built where nvcc is, installed where built.
cuda-plugin: $(LIBRARY)
	+@cmake --build $(BUILD) --target plugin -- --no-print-directory

install-cuda-plugin: all
	@if [ -f $(BUILD)/pg_kmeans_cuda.so ]; then \
	    $(INSTALL_SHLIB) $(BUILD)/pg_kmeans_cuda.so '$(DESTDIR)$(pkglibdir)/pg_kmeans_cuda.so'; fi

# Debug sections are most of a library: they stay in the build. STRIP_DEBUG=: installs them, too, as packagers want who keep
# them in packages of their own.
STRIP_DEBUG = strip --strip-debug
strip-installed: install-lib install-cuda-plugin
	@for library in pg_kmeans pg_kmeans_cuda; do \
	    installed='$(DESTDIR)$(pkglibdir)'/$$library.so; [ ! -f "$$installed" ] || $(STRIP_DEBUG) "$$installed" || exit 1; done

# What PGXN and packagers take: the files of HEAD, as build/pg_kmeans-VERSION.zip.
RELEASE = pg_kmeans-$(shell sed -nE '1,/"version"/s/.*"version": "([^"]+)".*/\1/p' META.json)
dist:
	@mkdir -p build
	git archive --prefix=$(RELEASE)/ -o build/$(RELEASE).zip HEAD

test test-deep demo bench valgrind sanitize setup deb server-matrix:
	@scripts/$@

help:
	@echo 'make             the extension, and the CUDA plugin where nvcc is found; PGKM_CUDA_ARCHS=90a-real'
	@echo '                 for one generation of GPUs (kept until it is given anew, empty: all)'
	@echo 'make install     into the server of PG_CONFIG; DESTDIR is respected'
	@echo 'make installcheck   regression tests on a running server that has it installed'
	@echo 'make deb         Debian packages for every server whose headers are installed, in build/deb'
	@echo 'make dist        the archive of a release, in build/'
	@echo 'make server-matrix  the regression tests on every server version that is installed'
	@echo 'make test        what catches most faults of a change; installs what is missing first'
	@echo 'make test-deep   all tests: these, and those that take their time'
	@echo 'make demo        k-means on real data on a throw-away server; draws pictures into build/demo'
	@echo 'make sanitize    unit and conformance tests under the address and undefined-behaviour sanitizers'
	@echo 'make valgrind    the regression tests with the server under valgrind'
	@echo 'make bench       the benchmarks, CSV under build/bench'

.PHONY: configure cuda-plugin install-cuda-plugin strip-installed test test-deep demo bench valgrind sanitize setup deb server-matrix dist help
