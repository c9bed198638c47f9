/// How a store that is about to be opened has come to its place.
enum StoreOrigin {
  case found

  /// This opening has migrated it from an original, which is kept; the events count once the store is open.
  case migrated(from: FilePath, [OpeningEvent])

  /// This opening has put it there: what was salvaged, or an empty store.
  case installed

  /// What is told of it once it is open.
  var events: [OpeningEvent] {
    if case .migrated(_, let events) = self { events } else { [] }
  }

  /// Whether this opening has put it there, so that nothing is known of its past.
  var isInstalled: Bool {
    if case .installed = self { true } else { false }
  }
}
