internal import Foundation
package import Platform
package import SupportBundle
internal import SystemPackage

/// A worker's answer: bounded data, since it has read hostile bytes.
package struct WorkResult: Sendable, Hashable, Codable {
  package struct Opened: Sendable, Hashable, Codable {
    /// The share of a store in it.
    package var level: String

    package var app: String?

    package var store: String

    /// The files below `data/`, limited.
    package var files: [InboxBundle.File]

    /// The number of all files.
    package var fileCount: Int

    package var facts: BundleFacts?

    package var account: BundleAccount?

    package var quarantineID: String?

    /// Whether it obeys the limits of an uncompromised worker.
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

  package struct Failure: Sendable, Hashable, Codable {
    package var code: String

    /// The message as a sentence.
    package var words: String

    /// Whether a retry may succeed.
    package var isEnvironmental: Bool

    package init(_ error: any Error) {
      switch error {
      // A worker's limits are ours: exceeding them is the bundle's fault and would recur.
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

  package struct Salvaged: Sendable, Hashable, Codable {
    /// Another version's result, if any.
    package var before: SalvageCount?

    package var after: SalvageCount

    /// Whether it obeys the limits of an uncompromised worker.
    var isPlausible: Bool { before?.isPlausible != false && after.isPlausible }
  }

  /// The result of a `salvage` job.
  package var salvaged: Salvaged?

  /// The result of an `open` job.
  package var opened: Opened?

  package var failure: Failure?

  package var isolation: WorkIsolation?

  static let lengthLimit = 8 << 20
}

/// A runner of orders in isolation.
package protocol WorkRunner: Sendable {
  /// Runs an order and waits for its end.
  ///
  /// - Parameters:
  ///   - beat: called regularly meanwhile.
  ///   - isCancelled: polled to stop early.
  /// - Returns: nil if cancelled.
  func run(
    _ order: WorkOrder, beat: () -> Void, isCancelled: @Sendable () -> Bool
  ) throws(InboxError) -> WorkResult?
}

/// Runs the work in this process, without protection: for tests only.
package struct WorkInProcess: WorkRunner {
  private let surroundings: Surroundings

  package init(surroundings: Surroundings) { self.surroundings = surroundings }

  package func run(
    _ order: WorkOrder, beat: () -> Void, isCancelled: @Sendable () -> Bool
  ) throws(InboxError) -> WorkResult? {
    BundleWork(order, surroundings: surroundings).run()
  }
}
