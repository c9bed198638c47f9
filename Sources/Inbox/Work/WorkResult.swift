internal import Foundation
package import Platform
package import SupportBundle
internal import SystemPackage

/// What a worker answers.
///
/// A worker has read hostile bytes: its answer is bounded, and taken as data.
package struct WorkResult: Sendable, Hashable, Codable {
  /// What a bundle holds.
  package struct Opened: Sendable, Hashable, Codable {
    /// How much of a store is in it.
    package var level: String

    /// The app.
    package var app: String?

    /// The store's name.
    package var store: String

    /// What is below `data/`, the first of very many.
    package var files: [InboxBundle.File]

    /// How many files there are in all.
    package var fileCount: Int

    /// What it says of its store.
    package var facts: BundleFacts?

    /// What the salvage report in it says.
    package var account: BundleAccount?

    /// The name of its store in quarantine; nil where it has none.
    package var quarantineID: String?

    /// Whether it keeps to the limits that a worker keeps to which nothing has taken over: no long texts, no path for a name.
    var isPlausible: Bool {
      let texts = [level, app, store, quarantineID].compactMap(\.self)
      let isName = quarantineID.map { name in
        !name.isEmpty && name.utf8.allSatisfy { (48...57).contains($0) || $0 == UInt8(ascii: "-") }
      }
      return texts.allSatisfy { $0.utf8.count <= 1 << 20 } && isName != false
        && files.count <= InboxBundle.maximumFiles && files.allSatisfy { $0.name.utf8.count <= 4096 && $0.bytes >= 0 }
        && (account?.entities.count ?? 0) <= BundleAccount.maximumEntities
        && (account?.runs.count ?? 0) <= BundleAccount.maximumRuns
    }
  }

  /// Why it failed.
  package struct Failure: Sendable, Hashable, Codable {
    /// The stable word.
    package var code: String

    /// What went wrong, as a sentence.
    package var words: String

    /// Whether it may go better later.
    package var isEnvironmental: Bool

    /// An error.
    package init(_ error: any Error) {
      switch error {
      // The limits of a worker are our own: what exceeds them is the bundle's fault, and would do so again.
      case let error as any ReportableError where error.code == FileError.Kind.outOfMemory.rawValue:
        code = InboxError.Kind.memory.rawValue
        words = "It needed more memory than it may have."
        isEnvironmental = false
      case let error as any ReportableError:
        code = error.code
        words = Self.bounded(error.detail)
        isEnvironmental = error.isEnvironmental && error.code != FileError.Kind.tooLarge.rawValue
      default:
        code = "unforeseen-error"
        words = "An error of the kind \(printable("\(type(of: error))")) came up."
        isEnvironmental = false
      }
    }

    private static func bounded(_ detail: String) -> String {
      let text = String(printable(detail).prefix(500))
      return text.prefix(1).uppercased() + text.dropFirst() + (text.hasSuffix(".") ? "" : ".")
    }
  }

  /// What a salvage gave.
  package struct Salvaged: Sendable, Hashable, Codable {
    /// The latest result of another version of this software; nil where there is none.
    package var before: SalvageCount?

    /// The result.
    package var after: SalvageCount

    /// Whether it keeps to the limits that a worker keeps to which nothing has taken over.
    var isPlausible: Bool { before?.isPlausible != false && after.isPlausible }
  }

  /// What the salvage gave, of a job that salvages a store.
  package var salvaged: Salvaged?

  /// What was found in the bundle, of a job that opens one.
  package var opened: Opened?

  /// Why it failed; nil where it did not.
  package var failure: Failure?

  /// What the worker could not do besides its job; nil where it does not tell.
  package var isolation: WorkIsolation?

  /// The most bytes of an answer that are read.
  static let lengthLimit = 8 << 20
}

/// Who does the work of an order, somewhere apart.
package protocol WorkRunner: Sendable {
  /// Does it, and waits for its end.
  ///
  /// - Parameters:
  ///   - beat: called now and then while it goes on.
  ///   - isCancelled: whether it is to end at once.
  /// - Returns: nil where it was cancelled.
  func run(
    _ order: WorkOrder, beat: () -> Void, isCancelled: @Sendable () -> Bool
  ) throws(InboxError) -> WorkResult?
}

/// Does the work in this very process: for tests alone.
package struct WorkInProcess: WorkRunner {
  private let surroundings: Surroundings

  /// A runner that protects nothing.
  package init(surroundings: Surroundings) { self.surroundings = surroundings }

  package func run(
    _ order: WorkOrder, beat: () -> Void, isCancelled: @Sendable () -> Bool
  ) throws(InboxError) -> WorkResult? {
    BundleWork(order, surroundings: surroundings).run()
  }
}
