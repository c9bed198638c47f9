import Platform
import SystemPackage
import Testing

/// What a failure says of itself and of its cause.
struct FailureTests {
  private enum LowErrorKind: String, FailureKind {
    case busy = "low-busy"
    case broken = "low-broken"

    var usualOperation: String { "use the low part" }

    var usualHint: String { "Wait." }

    var isEnvironmental: Bool { self == .busy }
  }

  private enum HighErrorKind: String, FailureKind {
    case own = "high-own"
    case low = "high-low"

    struct Details: FailureDetails {
      var name: String?
      var code: String?
      var isEnvironmental: Bool?
    }

    var usualOperation: String { "use the high part" }

    var usualHint: String { "Report it." }

    var standsForCause: Bool { self == .low }
  }

  private typealias LowError = Failure<LowErrorKind>
  private typealias HighError = Failure<HighErrorKind>

  @Test func aKindHasItsUsualWords() {
    let error = LowError(.busy, detail: "it is busy")
    #expect(error.operation == "use the low part" && error.hint == "Wait." && error.code == "low-busy")
    #expect(error.path == nil && error.cause == nil && error.isEnvironmental)
    #expect(error.description == "cannot use the low part: it is busy [low-busy]. Wait.")
    #expect(!LowError(.broken, detail: "it is broken").isEnvironmental)
  }

  @Test func othersAreTakenWhereTheyAreGiven() {
    let error = LowError(.broken, operation: "open it", path: "a\nb", detail: "it is broken", hint: "")
    #expect(error.description == "cannot open it \"a\\u{a}b\": it is broken [low-broken]. ")
  }

  @Test func aFailureHasTheWordsOfItsCause() throws {
    let cause = LowError(.busy, operation: "open it", path: "a", detail: "it is busy", hint: "Wait a little.")
    let error = HighError(.own, because: cause)
    #expect(error.operation == "open it" && error.path == "a")
    #expect(error.detail == "it is busy" && error.hint == "Wait a little.")
    #expect(error.code == "high-own" && !error.isEnvironmental)
    #expect((error.cause as? LowError)?.kind == .busy)
    let other = HighError(.own, because: cause, operation: "try it", path: "b", detail: "it failed", hint: "Stop.")
    #expect(other.description == "cannot try it \"b\": it failed [high-own]. Stop.")
  }

  @Test func aFailureThatStandsForItsCauseHasItsCode() {
    let busy = HighError(.low, because: LowError(.busy, detail: "it is busy"))
    #expect(busy.code == "low-busy" && busy.isEnvironmental)
    let broken = HighError(.low, because: HighError(.low, because: LowError(.broken, detail: "it is broken")))
    #expect(broken.code == "low-broken" && !broken.isEnvironmental)
    #expect(HighError(.low, detail: "it failed").code == "high-low", "there is no cause")
  }

  @Test func theDetailsHaveTheLastWord() {
    var error = HighError(.low, because: LowError(.busy, detail: "it is busy"))
    error.name = "A"
    #expect(error.details.name == "A" && error.name == "A")
    error.details.code = "high-special"
    error.details.isEnvironmental = false
    #expect(error.code == "high-special" && !error.isEnvironmental)
  }

  @Test func anErrorIsCalledWhatTheCodeCallsIt() {
    #expect(typeName(of: LowError(.busy, detail: "it is busy")) == "LowError")
    #expect(typeName(of: CancellationError()) == "CancellationError")
  }

  @Test func failuresOfAllModulesHaveThisInCommon() {
    let errors: [any ReportableError] = [
      LowError(.busy, detail: "it is busy"), HighError(.own, detail: "it failed"),
    ]
    #expect(errors.map(\.code) == ["low-busy", "high-own"])
    #expect(errors.map { $0.kind.usualHint } == ["Wait.", "Report it."])
  }
}
