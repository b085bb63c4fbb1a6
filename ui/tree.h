/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The messages of a session as a tree, and its last changes, for /undo and /redo. Both are made of the
 * records of its file (qsf_chatlog.h), one after the other: while they are written, and when they are read
 * again. So nothing that the program knows about them is lost when it is killed. Texts stay in the file: a
 * message takes 36 bytes. Pure; one thread.
 *
 * A MESSAGE is a child of the one before it, and UNDO and CLEAR only go back: what follows begins a branch. A
 * MESSAGE whose number is known is the same message again, which is how the program goes to another branch:
 * UNDO up to where both begin, and the messages of the branch again. A reader that knows no numbers gets the
 * same conversation. What left the context (FORGET) stays on the path.
 *
 * A change is one record, or several of which all but the last have `more`. */
#ifndef QSF_UI_TREE_H
#define QSF_UI_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "qsf_chatlog.h"

#define UI_TREE_MAX     ((uint32_t)1 << 18) /* messages: with more, branches that are not open are dropped */
#define UI_STEPS_MAX    256                 /* changes that can be undone */
#define UI_BRANCHES_MAX 100
#define UI_BRANCH_NAME  64

typedef struct UiNode {
    uint32_t id;      /* number in the session, rising in the array */
    uint32_t parent;  /* index + 1, 0 = none */
    uint32_t at;      /* QSFLogRecord.at; its highest bit: the message is of the user */
    uint32_t more;    /* the rest of an answer, which /continue added: index + 1 in UiTree.more, 0 = none */
    uint32_t next;    /* index + 1 of the child that was open last, 0 = none */
    uint32_t forget;  /* what had left the context when it was the last message: as UiPlaceInTree.forget */
    uint32_t nth;     /* of the answers to the same message, 1...; the same for messages of the user */
    uint32_t kids[2]; /* number of children: answers, messages of the user */
} UiNode;

#define UI_NODE_USER 0x80000000u
#define UI_NODE_AT   0x7fffffffu

typedef struct UiNodeMore {
    uint32_t at, next; /* index + 1 */
} UiNodeMore;

/* What a FORGET did, on top of those before it. */
typedef struct UiForget {
    uint32_t prev;     /* index + 1, 0 = none */
    uint32_t n;        /* messages, as in its record */
    uint32_t at;       /* its record + 1, if it has a summary; 0 = none */
    uint32_t gone;     /* first messages of the path that have left the context, in all */
    uint32_t in_front; /* messages of summaries that are there instead, 0..2 */
} UiForget;

/* Where a conversation is: its last message, and what has left its context. */
typedef struct UiSpot {
    uint32_t id;     /* of that message, 0 = the conversation is empty */
    uint32_t forget; /* index + 1, 0 = nothing */
    uint32_t branch; /* index + 1 of the branch that is open there, 0 = it has no name */
} UiSpot;

typedef enum UiStepKind {
    UI_STEP_EXCHANGE, /* a message, and perhaps its answer */
    UI_STEP_MOVED,    /* any other change of the messages */
    UI_STEP_SETTING, /* name, was, is; also branch, role, title, and stop: all stop strings (ui_stops_list) */
    UI_STEP_SYSTEM   /* the system prompt: was_at, is_at */
} UiStepKind;

/* One change, or a part of one. */
typedef struct UiStep {
    UiStepKind kind;
    bool more;   /* the step after it belongs to the same change: /role makes several */
    UiSpot to;   /* where it led */
    char by[16]; /* the command; "" for an exchange */
    char *name, *was, *is;
    uint32_t was_at, is_at; /* record + 1, 0 = none */
} UiStep;

typedef struct UiBranch {
    char name[UI_BRANCH_NAME];
    UiSpot tip; /* while another branch is open */
} UiBranch;

typedef struct UiTree {
    UiNode *nodes; /* (n) */
    uint32_t n, cap, last_id;
    uint32_t tip;     /* index + 1 of the last message, 0 = none */
    uint32_t depth;   /* messages up to it */
    UiNodeMore *more; /* (n_more) */
    uint32_t n_more, cap_more;
    uint32_t more_of;  /* index + 1 of the message that has the last of them, 0 = not known */
    UiForget *forgets; /* (n_forgets) */
    uint32_t n_forgets, cap_forgets;
    uint32_t forget;            /* index + 1 of what applies, 0 = nothing */
    uint32_t roots[2];          /* as UiNode.kids, of the empty conversation */
    uint32_t next;              /* the same as UiNode.next */
    UiStep steps[UI_STEPS_MAX]; /* [0, n_steps): those before n_done are in effect, the others undone */
    uint32_t n_steps, n_done;
    UiSpot begin; /* before the first of them */
    bool pending; /* a change has begun: by */
    char by[16];
    uint32_t system_at;          /* the last SYSTEM record + 1 */
    UiBranch *branches;          /* (n_branches) */
    uint32_t n_branches, branch; /* index + 1 of the open one, 0 = it has no name */
    uint32_t max;                /* nodes, 0 = UI_TREE_MAX */
    bool guide;                  /* the conversation is with the guide */
    bool dropped;                /* branches were, because there were too many messages */
    bool failed;                 /* out of memory: the tree is empty and stays so */
} UiTree;

/* Takes the next record, which is at r->at. */
void ui_tree_record(UiTree *t, const QSFLogRecord *r);
/* Another conversation begins, in the same file: messages and changes are dropped, numbering continues.
 * Settings that changed before the first message can still be undone. */
void ui_tree_reset(UiTree *t);
void ui_tree_free(UiTree *t);

/* The message with that number, or NULL. */
const UiNode *ui_tree_node(const UiTree *t, uint32_t id);
/* Its parent, or NULL. */
const UiNode *ui_tree_parent(const UiTree *t, const UiNode *n);
/* The last message, or NULL. */
const UiNode *ui_tree_tip(const UiTree *t);
UiSpot ui_tree_spot(const UiTree *t);
/* Where the branch through this message ends: what was open last after it. */
UiSpot ui_tree_end(const UiTree *t, uint32_t id);
/* Where a conversation that ends with this message is: nothing more has left its context than what had when
 * it was the last one, or than has now, if that is still possible. */
UiSpot ui_tree_spot_at(const UiTree *t, uint32_t id);
/* Number of messages from the beginning to this one. */
uint32_t ui_tree_depth(const UiTree *t, const UiNode *n);
/* Writes the numbers of the messages from the beginning to this one; dst has space for ui_tree_depth. */
void ui_tree_path(const UiTree *t, const UiNode *n, uint32_t *dst);
/* Answers to the same message, this one included; for a message of the user those of the user. */
uint32_t ui_tree_versions(const UiTree *t, const UiNode *n);
/* Version nth (1...) of a message, or NULL. */
const UiNode *ui_tree_version(const UiTree *t, const UiNode *n, uint32_t nth);
/* Messages that have left the context at a spot, and of summaries instead. */
void ui_tree_forgotten(const UiTree *t, UiSpot spot, uint32_t *gone, uint32_t *in_front);
/* Records of a message: calls fn with the place of each. */
void ui_tree_places(const UiTree *t, const UiNode *n, void (*fn)(void *arg, uint64_t at), void *arg);

/* The change that /undo takes back, or NULL; and where that leads. */
const UiStep *ui_tree_undo(const UiTree *t, UiSpot *to);
/* The one that /redo makes again, or NULL. */
const UiStep *ui_tree_redo(const UiTree *t);

/* The name of a branch, "" for 0. */
const char *ui_tree_branch_name(const UiTree *t, uint32_t branch);
/* The name of the open branch, "" = none. */
const char *ui_tree_branch(const UiTree *t);
/* Where branch `name` ends; false if there is none. */
bool ui_tree_find_branch(const UiTree *t, const char *name, UiSpot *tip);
/* The name of a branch that is not open and ends with this message, or NULL. */
const char *ui_tree_branch_at(const UiTree *t, uint32_t id);

/* Bytes of memory that it takes. */
uint64_t ui_tree_bytes(const UiTree *t);

#endif
