import HTTPServer
import Platform
import SupportBundle

/// The exports that are ready and wait for the user to agree to them.
///
/// What was made for one goes when it is forgotten: at the latest with this value.
final class PreparedExports: Sendable {
  /// An export that is ready.
  struct Entry: Sendable {
    /// What it is called in addresses.
    let id: String

    /// The store it is of.
    let store: StoreID

    /// What the store is called.
    let name: String

    /// What the bundle would hold.
    let prepared: PreparedExport

    /// Who alone could open it; everyone if empty.
    let recipients: [AgeRecipient]

    var target: RequestTarget { .to("exports", id) }
  }

  /// What was chosen for a store the last time.
  struct Choices: Sendable, Hashable {
    var level = BundleLevel.scrubbed
    var model: String?
    var recipients = ""
    var keeping: Set<String> = []
    var dropping: Set<String> = []
  }

  private struct State {
    var number = 0
    var entries: [Entry] = []
    var choices: [StoreID: Choices] = [:]
  }

  private let state = Mutex(State())

  private static let maximumChoices = 64

  /// The most that are kept: each may hold a copy of a whole store.
  private static let maximum = 4

  /// Keeps an export until the user says yes or no.
  func keep(
    _ prepared: PreparedExport, of store: StoreID, named name: String, for recipients: [AgeRecipient]
  ) -> Entry {
    state.withLock { state in
      state.number += 1
      let entry = Entry(
        id: "export-\(state.number)", store: store, name: name, prepared: prepared, recipients: recipients)
      state.entries.append(entry)
      if state.entries.count > Self.maximum { state.entries.removeFirst() }
      return entry
    }
  }

  /// What was chosen for a store the last time; nil for one that nothing was chosen for.
  func choices(of store: StoreID) -> Choices? { state.withLock { $0.choices[store] } }

  /// Notes what is chosen for a store.
  func note(_ choices: Choices, for store: StoreID) {
    state.withLock { state in
      if state.choices.count >= Self.maximumChoices { state.choices.removeAll() }
      state.choices[store] = choices
    }
  }

  /// The export of a store that was made ready last; nil for none.
  func latest(of store: StoreID) -> Entry? {
    state.withLock { state in state.entries.last { $0.store == store } }
  }

  /// The export of an identifier.
  ///
  /// - Throws: ``Refusal`` 404 where it was written, forgotten, or never was.
  func entry(_ id: String) throws(Refusal) -> Entry {
    guard let entry = state.withLock({ state in state.entries.first { $0.id == id } }) else {
      throw Refusal(.notFound, "there is no such export any more; ask for it again")
    }
    return entry
  }

  func forget(_ id: String) { state.withLock { state in state.entries.removeAll { $0.id == id } } }
}
