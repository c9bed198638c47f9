import HTTPServer
import Platform
import SupportBundle

/// The prepared exports that await consent.
///
/// Their files are removed when forgotten, at the latest with this value.
final class PreparedExports: Sendable {
  struct Entry: Sendable {
    let id: String

    let store: StoreID

    let name: String

    let prepared: PreparedExport

    /// The only possible readers; unencrypted if empty.
    let recipients: [AgeRecipient]

    var target: RequestTarget { .to("exports", id) }
  }

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

  /// The most kept exports, since each may hold a copy of a whole store.
  private static let maximum = 4

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

  func choices(of store: StoreID) -> Choices? { state.withLock { $0.choices[store] } }

  func note(_ choices: Choices, for store: StoreID) {
    state.withLock { state in
      if state.choices.count >= Self.maximumChoices { state.choices.removeAll() }
      state.choices[store] = choices
    }
  }

  func latest(of store: StoreID) -> Entry? {
    state.withLock { state in state.entries.last { $0.store == store } }
  }

  /// - Throws: ``Refusal`` 404 if it is written, forgotten or unknown.
  func entry(_ id: String) throws(Refusal) -> Entry {
    guard let entry = state.withLock({ state in state.entries.first { $0.id == id } }) else {
      throw Refusal(.notFound, "there is no such export any more; ask for it again")
    }
    return entry
  }

  func forget(_ id: String) { state.withLock { state in state.entries.removeAll { $0.id == id } } }
}
