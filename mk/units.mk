# SPDX-License-Identifier: GPL-3.0-or-later
# The programs of the unit tests; part of the Makefile. Linking a test costs more than compiling it, so the
# tests of a folder are one program, obj/tests/unit/FOLDER/units, with a symbolic link for each test.

# Tests with programs of their own: those that replace functions of libc, and those that TESTS picks, because
# then the others of their folders need not be compiled.
units_apart := base/t_savefile engine/t_oom%
unit_single := $(if $(TESTS),$(unit_bin),$(filter $(units_apart:%=$O/tests/unit/%),$(unit_bin)))
unit_linked := $(filter-out $(unit_single),$(unit_bin))
unit_folders := $(sort $(dir $(unit_linked)))

# In case an object was compiled before the compiler included this.
$(unit_bin:%=%.o): $S/tests/unit/units.h

unit_inputs := $(call obj,$(unit_main) $(harness_src)) $(engine)
ui_inputs := $(call obj,$(filter-out ui/main.c,$(ui_src)))
# $1: a file of tests/unit/ui or of another folder. The interface needs its objects and libraries.
ui_only = $(if $(filter $O/tests/unit/ui/%,$1),$2)
define link_units
$(call say,LINK,$(@:$O/tests/unit/%=%))
@rm -f $@
$Q$(link_dynamic) -o $@ $(filter %.o,$^) $(engine) $(CMOCKA_LIBS) $(call ui_only,$@,$(UI_LIBS)) $(LIB_LIBS)
endef

$(filter $O/tests/unit/ui/%,$(unit_single) $(unit_folders:%=%units)): $(ui_inputs)
$(filter $O/tests/unit/serve/%,$(unit_single) $(unit_folders:%=%units)): $(call obj,$(serve_parts))
$(unit_single): $O/%: $O/%.o $(unit_inputs)
	$(link_units)
$(unit_folders:%=%units): $(unit_inputs)
	$(link_units)
# A link is as new as the program.
define unit_rules
$1units: $(addsuffix .o,$(filter $1%,$(unit_linked)))
$(filter $1%,$(unit_linked)): $1units
	@ln -sf units $$@
endef
$(foreach f,$(unit_folders),$(eval $(call unit_rules,$f)))
