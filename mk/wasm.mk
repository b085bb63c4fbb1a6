# SPDX-License-Identifier: GPL-3.0-or-later
# The engine for web browsers, by Emscripten, with the page that chats with it; part of the Makefile. The
# same files as for other systems (docs/WEB.md).

.PHONY: wasm check-wasm wasm-checkkern wasm-ready wasm-maybe

WASM_CC ?= emcc
WASM_CFLAGS ?= -O2
# Debian's Emscripten runs scripts that need packages of Debian's node, which another node does not find.
wasm wasm-checkkern: export NODE_PATH := $(if $(NODE_PATH),$(NODE_PATH):)/usr/share/nodejs

wasm_lacks = $(shell for f in $(WASM_CC) emar emranlib node; do command -v $$f >/dev/null || { echo $$f; break; }; done)
wasm_build = O=wasm/obj ARCH=wasm PLATFORM=web config_h=wasm/config.h CC='$(WASM_CC)' AR=emar RANLIB=emranlib \
             CFLAGS='$(WASM_CFLAGS)' CPPFLAGS= LDFLAGS= EXTRA_CFLAGS=-pthread \
             CMOCKA_CFLAGS= LIB_CFLAGS=-Iwasm/libs/include COLD_OPT= KERNEL_OPT=-O3 KERNEL_PCH=no KERNEL_DEBUG=-g0 KERNEL_UNWIND= WARN_FLAGS='$(WARN_FLAGS) -Wno-shorten-64-to-32' SAN=
# What is left out: see the files that end in _none.
wasm_defines := QSF_WITHOUT_JANSSON QSF_WITHOUT_INIH QSF_WITHOUT_LIBDEFLATE

wasm/config.h: config.stamp
	@mkdir -p $(@D)
	@printf '%s\n' '/* written by mk/wasm.mk */' '#define QSF_VERSION "$(VERSION)"' '#define QSF_DATADIR "/qsf"' \
	    '#define QSF_HAVE_URING 0' '#define QSF_HAVE_ZSTD 0' $(wasm_defines:%='#define % 1') >$@

# ---- the engine

# src/web has what only a page calls, and what it has instead of mmap.
wasm_dirs := $(filter-out measure catalog cli svg,$(lib_dirs)) web
wasm_src := $(filter-out src/stream/io_mmap.c,$(call find,$(wasm_dirs:%=src/%/*.c))) $(platform_src) $(kernel_src)

# Libraries that no system has for browsers, from the system's source packages. Without jansson a directory of
# Hugging Face cannot be opened, which no page can pick; a JSON schema neither.
wasm_libs := wasm/libs/.built
$(wasm_libs): $S/packaging/static-libs
	$(call say,LIBS,$(@D))
	@rm -rf $(@D) && mkdir -p $(@D)
	$QCC='$(WASM_CC) -pthread' AR=emar $S/packaging/static-libs $(@D) lz4 pcre2 utf8proc
	@touch $@

# The page makes the memory, whose maximum is the budget, and passes it to the module, which grows it by what is
# missing and no more.
wasm_link := -pthread -sMODULARIZE=1 -sEXPORT_NAME=QsfEngine -sENVIRONMENT=worker -sALLOW_MEMORY_GROWTH=1 \
    -sMAXIMUM_MEMORY=4GB -sINITIAL_MEMORY=4MB -sMEMORY_GROWTH_GEOMETRIC_STEP=0 -sTOTAL_STACK=128KB \
    -sDYNAMIC_EXECUTION=0 -sEXPORTED_FUNCTIONS=_malloc,_free \
    -sEXPORTED_RUNTIME_METHODS=UTF8ToString,stringToUTF8,lengthBytesUTF8 -Wno-pthreads-mem-growth

wasm/web/engine.js: $(call obj,$(wasm_src))
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$Q$(link) $(wasm_link) -Lwasm/libs/lib -o $@ $^ -llz4 -lpcre2-8 -lutf8proc -lm

wasm_pages := $(patsubst $S/web/%,wasm/web/%,$(wildcard $S/web/*)) wasm/web/guide.qsf wasm/web/LICENSE
$(filter-out wasm/web/guide.qsf wasm/web/LICENSE,$(wasm_pages)): wasm/web/%: $S/web/%
	@mkdir -p $(@D) && cp $< $@
wasm/web/guide.qsf: $S/models/guide.qsf
	@mkdir -p $(@D) && cp $< $@
wasm/web/LICENSE: $S/LICENSE
	@mkdir -p $(@D) && cp $< $@ && cp -r wasm/libs/licenses wasm/web

wasm-ready:
	@test -z '$(wasm_lacks)' || { echo 'make wasm: there is no $(wasm_lacks) (Debian: apt-get install emscripten)' >&2; exit 1; }
wasm: wasm-ready $(wasm_libs)
	+$Q$(MAKE) --no-print-directory $(wasm_build) wasm/web/engine.js $(wasm_pages)

# Compiled before the tests run, which have a time limit.
wasm-maybe:
	-+$(if $(wasm_lacks),,$Q$(MAKE) --no-print-directory wasm >/dev/null)
ifeq ($(SAN),)
check-all check-long: $(if $(TESTS),$(if $(filter web,$(TESTS)),wasm-maybe),wasm-maybe)
check-system: $(if $(filter web,$(TESTS)),wasm-maybe)
endif

# ---- the kernels, checked in node

wasm_check_link := -pthread --pre-js $S/tests/kernels/wasm/node.js -sEXIT_RUNTIME=1 -sINITIAL_MEMORY=256MB -sTOTAL_STACK=1MB -sENVIRONMENT=node,worker
check-wasm: export WASM_CHECKKERN = $(CURDIR)/wasm/checkkern.js
check-wasm: export WASM_LACKS = $(wasm_lacks)
wasm-checkkern:
	+$(if $(wasm_lacks),,$Q$(MAKE) --no-print-directory $(wasm_build) EXTRA_LDFLAGS='$(wasm_check_link)' checkkern=wasm/checkkern.js wasm/checkkern.js)
check-wasm: wasm-checkkern
	$(runner) $S/tests/kernels/wasm.sh
