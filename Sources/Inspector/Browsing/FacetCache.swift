internal import GRDB
internal import Platform

/// Caches counted facets, since a browsed store doesn't change.
final class FacetCache: Sendable {
  private struct State {
    var values: [String: [RecordPage.Facet.Count]] = [:]
    var steps: [String: SteppedFacet] = [:]
  }

  /// The most cached facets; a full cache is emptied.
  private static let capacity = 100

  private let state = Mutex(State())

  func counts(
    _ sql: String, _ arguments: [DatabaseValue],
    make: () throws(RecordBrowsingError) -> [RecordPage.Facet.Count]?
  ) throws(RecordBrowsingError) -> [RecordPage.Facet.Count]? {
    let key = Self.key(sql, arguments)
    if let known = state.withLock({ $0.values[key] }) { return known }
    guard let made = try make() else { return nil }
    state.withLock { state in
      if state.values.count >= Self.capacity { state.values.removeAll() }
      state.values[key] = made
    }
    return made
  }

  func steps(
    _ sql: String, _ arguments: [DatabaseValue], make: () throws(RecordBrowsingError) -> SteppedFacet
  ) throws(RecordBrowsingError) -> SteppedFacet {
    let key = Self.key(sql, arguments)
    if let known = state.withLock({ $0.steps[key] }) { return known }
    let made = try make()
    // Timeouts aren't cached; another try may be faster.
    guard made.counts != nil else { return made }
    state.withLock { state in
      if state.steps.count >= Self.capacity { state.steps.removeAll() }
      state.steps[key] = made
    }
    return made
  }

  private static func key(_ sql: String, _ arguments: [DatabaseValue]) -> String {
    sql + "\u{0}" + arguments.map(PageToken.text).joined(separator: "~")
  }
}
