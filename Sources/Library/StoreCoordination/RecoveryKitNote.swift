package import RecoveryKit

/// The noting of a recovery kit, which a ``BackgroundPass`` does over a store that was opened.
package enum RecoveryKitNote {
  /// How the noting ended.
  package enum Outcome: Sendable {
    /// A kit was written; the event says where.
    case noted(OpeningEvent)

    /// The newest kit is not old enough yet, or none is wanted.
    case notDue

    /// None could be made; the store is open all the same, and the next opening tries again.
    case failed(RecoveryKitError)
  }

  /// Notes a kit where the newest one is old enough.
  static func note(
    _ store: StoreFileSet, home: FilePath, every interval: Duration, _ surroundings: Surroundings
  ) -> Outcome {
    let folder = KitFolder(for: store.main, home: home, in: surroundings.fileSystem)
    do throws(RecoveryKitError) {
      let now = surroundings.now()
      let generation = try generation(of: store, surroundings)
      if try folder.hasKit(of: generation, youngerThan: interval, at: now) { return .notDue }
      var kit = try RecoveryKit(ofOpen: store.main, surroundings: surroundings)
      kit.generation = generation
      let path = try folder.add(kit)
      return .noted(
        OpeningEvent(
          .recoveryKit, at: now, path: path,
          words: "A recovery kit of the store was noted; it holds none of the records' values."))
    } catch {
      return .failed(error)
    }
  }

  private static func generation(
    of store: StoreFileSet, _ surroundings: Surroundings
  ) throws(RecoveryKitError) -> String? {
    do throws(FileError) {
      return try QuarantineFolder(beside: store, surroundings: surroundings).lineage(of: store.main)?.generation
    } catch {
      throw RecoveryKitError(error)
    }
  }
}
