# SPDX-License-Identifier: GPL-3.0-or-later
# What leaves the build directory: install, the amalgamation and archives of the sources. Part of the
# Makefile.

.PHONY: install install-data install-strip uninstall completions amalgamation dist distcheck

# `make install prefix=DIR` moves what configure put below its prefix.
$(foreach d,bindir libdir includedir mandir datadir,\
    $(eval $d := $(patsubst $(configured_prefix)/%,$(prefix)/%,$($d))))

INSTALL ?= install
man_pages := $(call find,man/*.[15])
templates := $(call find,templates/*.*)
games := $(call find,templates/games/*)
models := $(call find,models/*.qsf)
headers := $(call find,include/qsf.h include/qsf_engine.h include/qsf_settings.h)
D = $(DESTDIR)
install_to = $(if $(strip $2),$(INSTALL) -d $D$3 && $(INSTALL) -m $1 $2 $D$3)

# ---- completions for shells: each program prints its own, in $(EMULATOR) if it is for another machine. One that
# does not run here has none: its files are empty, and not installed.

bashcompletiondir ?= $(datadir)/bash-completion/completions
zshcompletiondir ?= $(datadir)/zsh/site-functions
fishcompletiondir ?= $(datadir)/fish/vendor_completions.d
completion_files := $(foreach p,$(programs),bash/$p zsh/_$p fish/$p.fish)
# $(call completion_path,bash/qsf-run): where it is installed.
completion_path = $D$($(patsubst %/,%,$(dir $1))completiondir)/$(notdir $1)

completions: $(addprefix $O/completions/,$(completion_files))
$O/completions/bash/% $O/completions/zsh/_% $O/completions/fish/%.fish: %
	$(call say,GEN,"completions of $*")
	@mkdir -p $O/completions/bash $O/completions/zsh $O/completions/fish
	$Qif $(EMULATOR) ./$* --version >/dev/null 2>&1; then \
	    $(EMULATOR) ./$* --print-completion bash >$O/completions/bash/$* && \
	    $(EMULATOR) ./$* --print-completion zsh >$O/completions/zsh/_$* && \
	    $(EMULATOR) ./$* --print-completion fish >$O/completions/fish/$*.fish; \
	else \
	    echo "no completions of $*: it does not run here" >&2; \
	    for f in bash/$* zsh/_$* fish/$*.fish; do : >$O/completions/$$f; done; \
	fi

install: all
	$(call install_to,755,$(programs),$(bindir))
	$(call install_to,644,libqsf.a,$(libdir))
	$(call install_to,644,qsf.pc,$(libdir)/pkgconfig)
	@sed 's|^prefix=.*|prefix=$(prefix)|; s|^libdir=.*|libdir=$(libdir)|; s|^includedir=.*|includedir=$(includedir)|' \
	    qsf.pc >$D$(libdir)/pkgconfig/qsf.pc
	$(call install_to,644,$(addprefix $S/,$(headers)),$(includedir))
	+@$(MAKE) --no-print-directory install-data

# What is the same on every machine.
install-data: completions
	$(call install_to,644,$(addprefix $S/,$(filter %.1,$(man_pages))),$(mandir)/man1)
	$(call install_to,644,$(addprefix $S/,$(filter %.5,$(man_pages))),$(mandir)/man5)
	$(call install_to,644,$(addprefix $S/,$(templates)),$(datadir)/qsf/templates)
	$(call install_to,644,$(addprefix $S/,$(games)),$(datadir)/qsf/templates/games)
	$(call install_to,644,$(addprefix $S/,$(models)),$(datadir)/qsf/models)
	$(call install_to,644,$S/packaging/qsf.desktop,$(datadir)/applications)
	$(call install_to,644,$S/packaging/qsf.svg,$(datadir)/icons/hicolor/scalable/apps)
	$(if $(serve_src),$(call install_to,644,$S/packaging/qsf-serve.service,$(datadir)/systemd/user))
	@$(foreach f,$(completion_files),test ! -s $O/completions/$f || { $(INSTALL) -d $(dir $(call completion_path,$f)) && \
	    $(INSTALL) -m 644 $O/completions/$f $(call completion_path,$f); } || exit;)

install-strip: install
	$(if $(programs),$(STRIP) $(addprefix $D$(bindir)/,$(programs)))

uninstall:
	rm -f $(addprefix $D$(bindir)/,$(programs)) $D$(libdir)/libqsf.a $D$(libdir)/pkgconfig/qsf.pc \
	    $(addprefix $D$(includedir)/,$(notdir $(headers))) \
	    $(foreach p,$(man_pages),$D$(mandir)/man$(patsubst .%,%,$(suffix $p))/$(notdir $p)) \
	    $D$(datadir)/applications/qsf.desktop $D$(datadir)/icons/hicolor/scalable/apps/qsf.svg \
	    $D$(datadir)/systemd/user/qsf-serve.service \
	    $(addprefix $D$(datadir)/qsf/,$(templates) $(games) $(models)) $(foreach f,$(completion_files),$(call completion_path,$f))
	-@rmdir $D$(datadir)/qsf/templates/games $D$(datadir)/qsf/templates $D$(datadir)/qsf/models $D$(datadir)/qsf 2>/dev/null || true

# ---- one file: qsf-run with the kernels of every machine, without the parts that only qsf-convert needs

PYTHON ?= python3
amalgam_src := $(call find,$(patsubst %,src/%/*.c,$(lib_dirs) run) kernels/*.c kernels/*/*.c) $(platform_src)
amalgamation: $(addprefix $O/,$(generated_native))
	$(call say,GEN,qsf.c)
	$Q$(PYTHON) $S/tools/amalgamate -s $S -g $O -o . -v $(VERSION) -d $(datadir)/qsf \
	    $(sort $(amalgam_src) $(generated_native))

# ---- dist

dist_name = qsf-$(VERSION)
# In a checkout git lists the files; in an unpacked archive MANIFEST does, whose files are all of the time of the last commit (mk/package.mk).
# The same files give the same bytes, whatever the directory, the umask and the owner. Only their being executable is
# kept of the modes.
dist:
	@rm -rf $(dist_name) && mkdir $(dist_name)
	@if test -e $S/.git; then git -C $S ls-files; else cat $S/MANIFEST; fi \
	    | grep -v '^MANIFEST$$' | while read -r f; do test ! -f $S/$$f || echo $$f; done | LC_ALL=C sort >$(dist_name)/MANIFEST
	@(cd $S && tar cf - -T '$(CURDIR)/$(dist_name)/MANIFEST') | (cd $(dist_name) && tar xf -)
	@LC_ALL=C tar cf - --sort=name --format=ustar --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
	    --mtime=@$(SOURCE_DATE_EPOCH) $(dist_name) | gzip -9n >$(dist_name).tar.gz
	@rm -rf $(dist_name)
	@echo $(dist_name).tar.gz

distcheck: dist
	@rm -rf distcheck && mkdir -p distcheck/build
	cd distcheck && gzip -dc ../$(dist_name).tar.gz | tar xf -
	chmod -R a-w distcheck/$(dist_name)
	cd distcheck/build && ../$(dist_name)/configure --prefix=/usr CC='$(CC)'
	+$(MAKE) -C distcheck/build
	+QSF_TEST_DATA=$${QSF_TEST_DATA:-$(abspath $S/../shared)} $(MAKE) -C distcheck/build check
	+$(MAKE) -C distcheck/build install DESTDIR=$(CURDIR)/distcheck/root
	+$(MAKE) -C distcheck/build uninstall DESTDIR=$(CURDIR)/distcheck/root
	@test -z "$$(find distcheck/root -type f)" || { echo "left behind:"; find distcheck/root -type f; exit 1; }
	+$(MAKE) -C distcheck/build dist
	@chmod -R u+w distcheck && rm -rf distcheck
	@echo "$(dist_name).tar.gz is good"
