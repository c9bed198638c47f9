internal import Dispatch
public import RecoveryKit
internal import Synchronization

/// The noting of a recovery kit in the background, after a healthy store was opened.
///
/// The opening does not wait for it. An app that ends soon after, or that wants to know, waits for its outcome.
public final class RecoveryKitNote: Sendable {
  /// How the noting ended.
  public enum Outcome: Sendable {
    /// A kit was written; the event says where.
    case noted(OpeningEvent)

    /// The newest kit is not old enough yet.
    case notDue

    /// None could be made; the store is open all the same, and the next opening tries again.
    case failed(RecoveryKitError)
  }

  private let group = DispatchGroup()
  private let result = Mutex<Outcome?>(nil)

  /// The notings that are under way, by the path of the store.
  private static let running = Mutex<[FilePath: RecoveryKitNote]>([:])

  /// Begins to note a kit on a thread of its own.
  init(of store: StoreFileSet, in folder: KitFolder, every interval: Duration, surroundings: Surroundings) {
    group.enter()
    Self.running.withLock { $0[store.main] = self }
    DispatchQueue.global(qos: .utility).async { [self] in
      let outcome = Self.note(store, folder, interval, surroundings)
      result.withLock { $0 = outcome }
      Self.running.withLock { if $0[store.main] === self { $0[store.main] = nil } }
      group.leave()
    }
  }

  /// Waits until the noting has ended, and tells how.
  public func wait() -> Outcome {
    group.wait()
    return result.withLock { $0 } ?? .notDue
  }

  /// Waits for a noting of a store that is under way in this process: its connection would be in the way of whoever wants
  /// the store to himself.
  static func waitForRunning(of store: FilePath) {
    let note = running.withLock { $0[store] }
    _ = note?.wait()
  }

  private static func note(
    _ store: StoreFileSet, _ folder: KitFolder, _ interval: Duration, _ surroundings: Surroundings
  ) -> Outcome {
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
          words: "A recovery kit of the healthy store was noted; it holds none of the records' values."))
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
