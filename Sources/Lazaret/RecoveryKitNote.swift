public import RecoveryKit

/// The noting of a recovery kit, which a ``BackgroundPass`` does over a healthy store.
public enum RecoveryKitNote {
  /// How the noting ended.
  public enum Outcome: Sendable {
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
      if let newest = try folder.newest() {
        let age = now.secondsSince1970 - newest.secondsSince1970
        // A kit of the future is of no use for telling time.
        if age >= 0, age < interval.components.seconds { return .notDue }
      }
      let kit = try RecoveryKit(ofOpen: store.main, surroundings: surroundings)
      let path = try folder.add(kit)
      return .noted(
        OpeningEvent(
          .recoveryKit, at: now, path: path,
          words: "A recovery kit of the healthy store was noted; it holds none of the records' values."))
    } catch {
      return .failed(error)
    }
  }
}
