internal import StoreFiles

extension BackupPlace {
  /// One: a folder answers at once, and an app that looks at its backups needs no threads for it.
  package var readsAtOnce: Int { 1 }

  /// Does something with each of several things that lie here, as many at once as the place is read, and gives what came of them
  /// in their order.
  ///
  /// - Throws: what the first of them that failed threw, in their order.
  func atOnce<Item: Sendable, Outcome: Sendable>(
    _ items: [Item], _ body: @escaping @Sendable (Item) throws(BackupError) -> Outcome
  ) throws(BackupError) -> [Outcome] {
    let parts = max(1, min(readsAtOnce, items.count))
    // Neighbours stay together, so that the first part that fails has the first thing that failed.
    let works = (0..<parts).map { items[(items.count * $0 / parts)..<(items.count * ($0 + 1) / parts)] }
    return try concurrently(works) { (work) throws(BackupError) in
      var outcomes: [Outcome] = []
      for item in work { outcomes.append(try body(item)) }
      return outcomes
    }.flatMap(\.self)
  }
}
