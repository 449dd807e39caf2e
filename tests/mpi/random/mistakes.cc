// SPDX-License-Identifier: Apache-2.0
#include "mistakes.h"

#include <string>

namespace mpi_test {
namespace {

enum class Mistake : std::uint8_t {
  kRootTooLarge,
  kNegativeRoot,
  kRootIsNull,
  kRootOfIntercommunicator,
  kNoComm,
  kNoTypes,
  kNoOp,
  kOpNotForType,
  kOpOnDerived,
  kIntoPlace,
  // Which not all ranks may notice, or only those that have something to send.
  kNoInType,
  kNoOutType,
  kNegativeIn,
  kNegativeOut,
  kNegativeInList,
  kNegativeOutList,
  kNoInLists,
  kNoOutLists,
  kNoIn,
  kNoOut,
  kFromPlace,
  kOneBuffer,
  kUncommittedIn,
  kUncommittedOut,
  kNoRequest,
};
constexpr const char* kNames[] = {"root too large",
                                  "negative root",
                                  "root is MPI_PROC_NULL",
                                  "root is MPI_ROOT",
                                  "no communicator",
                                  "no types",
                                  "no operator",
                                  "operator not for type",
                                  "operator on derived type",
                                  "output in place",
                                  "no input type",
                                  "no output type",
                                  "negative input count",
                                  "negative output count",
                                  "negative in input list",
                                  "negative in output list",
                                  "no input lists",
                                  "no output lists",
                                  "no input",
                                  "no output",
                                  "input in place",
                                  "one buffer",
                                  "input type not committed",
                                  "output type not committed",
                                  "no request"};
constexpr int kMistakes = 25, kForAll = 10;

struct Answer {
  int error_class = MPI_SUCCESS;
  int handled = 0, handled_elsewhere = 0, handled_class = MPI_SUCCESS;
  bool operator==(const Answer&) const = default;
  [[nodiscard]] std::string text() const {
    return "class " + std::to_string(error_class) + ", handler called " + std::to_string(handled) +
           " times for it, " + std::to_string(handled_elsewhere) + " for others, last class " +
           std::to_string(handled_class);
  }
};

Answer g_answer;
MPI_Comm g_comm = MPI_COMM_NULL;

void handle(MPI_Comm* comm, int* code, ...) {
  ++(*comm == g_comm ? g_answer.handled : g_answer.handled_elsewhere);
  MPI_Error_class(*code, &g_answer.handled_class);
}

struct Wrong {
  Mistake mistake;
  MPI_Datatype uncommitted, derived;
  int basic, op;
  std::size_t place;
};

void negate(Side& side, std::size_t place) {
  if (side.counts.empty()) return;
  side.counts[place % side.counts.size()] = -2;
  side.wide_counts[place % side.counts.size()] = -2;
}

void set_type(Side& side, MPI_Datatype type, std::size_t place) {
  side.type = type;
  if (!side.types.empty()) side.types[place % side.types.size()] = type;
}

void make_mistake(Arguments& a, const Wrong& wrong, int size) {
  switch (wrong.mistake) {
    case Mistake::kRootTooLarge: a.root = size; break;
    case Mistake::kNegativeRoot: a.root = -7; break;
    case Mistake::kRootIsNull: a.root = MPI_PROC_NULL; break;
    case Mistake::kRootOfIntercommunicator: a.root = MPI_ROOT; break;
    case Mistake::kNoComm: a.comm = MPI_COMM_NULL; break;
    case Mistake::kNoTypes:
      set_type(a.in, MPI_DATATYPE_NULL, wrong.place);
      set_type(a.out, MPI_DATATYPE_NULL, wrong.place);
      break;
    case Mistake::kNoOp: a.op = MPI_OP_NULL; break;
    case Mistake::kOpNotForType:
      a.in.type = basics()[static_cast<std::size_t>(wrong.basic)].type;
      a.op = kPredefinedOps[wrong.op];
      break;
    case Mistake::kOpOnDerived:
      a.in.type = wrong.derived;
      a.op = MPI_SUM;
      break;
    case Mistake::kIntoPlace: a.out.buffer = MPI_IN_PLACE; break;
    case Mistake::kNoInType: set_type(a.in, MPI_DATATYPE_NULL, wrong.place); break;
    case Mistake::kNoOutType: set_type(a.out, MPI_DATATYPE_NULL, wrong.place); break;
    case Mistake::kNegativeIn: a.in.count = -1; break;
    case Mistake::kNegativeOut: a.out.count = -1; break;
    case Mistake::kNegativeInList: negate(a.in, wrong.place); break;
    case Mistake::kNegativeOutList: negate(a.out, wrong.place); break;
    case Mistake::kNoInLists: a.in.no_lists = true; break;
    case Mistake::kNoOutLists: a.out.no_lists = true; break;
    case Mistake::kNoIn: a.in.buffer = nullptr; break;
    case Mistake::kNoOut: a.out.buffer = nullptr; break;
    case Mistake::kFromPlace: a.in.buffer = MPI_IN_PLACE; break;
    case Mistake::kOneBuffer: a.in.buffer = a.out.buffer; break;
    case Mistake::kUncommittedIn: set_type(a.in, wrong.uncommitted, wrong.place); break;
    case Mistake::kUncommittedOut: set_type(a.out, wrong.uncommitted, wrong.place); break;
    case Mistake::kNoRequest: break;
  }
}

Answer answer_of(By by, Operation& operation, CallForm form, bool no_request) {
  g_answer = {};
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = operation.call(by, form, no_request ? nullptr : &request);
  MPI_Error_class(code, &g_answer.error_class);
  if (code != MPI_SUCCESS || g_answer.handled + g_answer.handled_elsewhere > 0) return g_answer;
  if (form == CallForm::kPersistent) requests_of(by).free(&request);
  if (form == CallForm::kStarted) requests_of(by).wait(&request, MPI_STATUS_IGNORE);
  return g_answer;
}

bool is_possible(Mistake mistake, Kind kind, CallForm form) {
  const bool reduces = is_reduction(kind);
  switch (mistake) {
    case Mistake::kNoOp:
    case Mistake::kOpNotForType:
    case Mistake::kOpOnDerived: return reduces;
    case Mistake::kRootTooLarge:
    case Mistake::kNegativeRoot:
    case Mistake::kRootIsNull:
    case Mistake::kRootOfIntercommunicator: return is_rooted(kind);
    case Mistake::kNoComm: return true;
    case Mistake::kNoRequest: return form != CallForm::kBlocking;
    default: return kind != Kind::kBarrier;
  }
}

// What an MPI does not look at, and falls over.
bool is_fatal(Mistake mistake, Kind kind, CallForm form) {
#if defined(OPEN_MPI)
  const bool blocks = form == CallForm::kBlocking;
  return mistake == Mistake::kNoIn || mistake == Mistake::kNoOut ||
         (mistake == Mistake::kNoComm && is_of_neighbours(kind)) ||
         (!blocks && static_cast<int>(mistake) >= kForAll);
#else
  (void)kind;
  (void)form;
  (void)mistake;
  return false;
#endif
}

}  // namespace

void try_mistake(const Group& parent, std::uint64_t seed) {
  Random shared(seed);
  const bool alone = shared.chance(60);
  const auto kind = static_cast<Kind>(shared.below(kKinds));
  const auto form = static_cast<CallForm>(shared.below(3));
  Wrong wrong{};
  wrong.mistake = static_cast<Mistake>(shared.below(alone ? kMistakes : kForAll));
  wrong.place = static_cast<std::size_t>(shared.below(4));
  bool refused = false;
  for (int tries = 0; !refused && tries < 1000; ++tries) {
    wrong.basic = shared.below(static_cast<int>(basics().size()));
    wrong.op = shared.below(12);
    refused = !accepts(wrong.op, wrong.basic);
  }
  if (!refused && wrong.mistake == Mistake::kOpNotForType) return;
  if (!is_possible(wrong.mistake, kind, form) || is_fatal(wrong.mistake, kind, form)) return;
  if (parent.comm == MPI_COMM_NULL) return;
  if (!alone && is_of_neighbours(kind)) return;
  if (!alone && is_rooted(kind) && wrong.mistake == Mistake::kIntoPlace) return;
  MPI_Comm comm = MPI_COMM_NULL;
  if (alone && is_of_neighbours(kind)) {
    const int one = 1, yes = 1;
    MPI_Cart_create(MPI_COMM_SELF, 1, &one, &yes, 0, &comm);
  } else {
    MPI_Comm_dup(alone ? MPI_COMM_SELF : parent.comm, &comm);
  }
  MPI_Errhandler handler{};
  MPI_Comm_create_errhandler(handle, &handler);
  for (const MPI_Comm one : {comm, MPI_COMM_WORLD, MPI_COMM_SELF}) {
    MPI_Comm_set_errhandler(one, handler);
  }
  g_comm = comm;
  const Group group = look_at_group(comm, alone ? "one rank" : parent.name);
  MPI_Type_contiguous(2, MPI_INT, &wrong.derived);
  MPI_Type_commit(&wrong.derived);
  MPI_Type_contiguous(2, MPI_INT, &wrong.uncommitted);
  {
    Operation operation(group, kind, shared.next(),
                        mix(seed, static_cast<std::uint64_t>(world_rank()) + 1), true);
    for (const By by : kBoth) make_mistake(operation.arguments(by), wrong, group.size);
    const bool no_request = wrong.mistake == Mistake::kNoRequest;
    const Answer theirs = answer_of(By::kHost, operation, form, no_request);
    const Answer ours = answer_of(By::kCarillon, operation, form, no_request);
    check(ours == theirs,
          "seed " + std::to_string(seed) + ", form " + std::to_string(static_cast<int>(form)) +
              ", " + kNames[static_cast<int>(wrong.mistake)] + ", " + operation.text() +
              ": the MPI answers " + theirs.text() + ", with carillon it is " + ours.text());
  }
  for (const MPI_Comm one : {comm, MPI_COMM_WORLD, MPI_COMM_SELF}) {
    MPI_Comm_set_errhandler(one, MPI_ERRORS_ARE_FATAL);
  }
  MPI_Errhandler_free(&handler);
  MPI_Type_free(&wrong.derived);
  MPI_Type_free(&wrong.uncommitted);
  MPI_Comm_free(&comm);
}

}  // namespace mpi_test
