# SPDX-License-Identifier: GPL-3.0-or-later
# compile_commands.json, for editors and analyzers; part of the Makefile. One shell line per source, so that
# no line grows too long.

.PHONY: compdb list-src kernel-src

compdb: compile_commands.json
define newline


endef
compdb_path = $(if $(filter $1,$(generated_src)),$O,$S)/$1
compdb_entry = @printf '%s\n' '{"directory": "$(CURDIR)", "file": "$(compdb_path)", "command": "$(subst ",\",$(call compile,$(basename $1))) -c $(compdb_path)"}$2' >>$@.tmp$(newline)
compdb_dirs = $(sort $(dir $(filter-out $(generated_src),$(all_src))))
compile_commands.json: config.mk $S/Makefile $(wildcard $S/mk/*.mk) $S/kernels/kernels.mk $(formats_h) $(addprefix $S/,$(compdb_dirs))
	$(call say,GEN,$@)
	@echo '[' >$@.tmp
	$(foreach s,$(all_src),$(call compdb_entry,$s,$(if $(filter $s,$(lastword $(all_src))),,$(comma))))
	@echo ']' >>$@.tmp
	@mv $@.tmp $@

# The sources of the programs, for tests: list-src PLATFORM=macos ARCH=arm.
list-src:
	@printf '%s\n' $(filter-out $(generated_src),$(lib_src) $(convert_lib_src) $(run_src) $(convert_src) $(ui_src) $(get_src) $(serve_src))
# Only the text of the generated kernels: kernel-src ARCH=arm O=DIRECTORY.
kernel-src: $(addprefix $O/,$(generated_src))
