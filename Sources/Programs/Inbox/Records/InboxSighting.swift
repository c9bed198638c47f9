internal import StoreFiles

/// That a damage was seen; it stays when the bundle is discarded.
package struct InboxSighting: Sendable, Hashable {
  /// The bundle that it was seen in.
  package var bundle: String

  /// What tells one store from another: the same store that is sent again, at another level, is one sighting.
  package var store: String

  /// The mark of the damage.
  package var fingerprint: DamageFingerprint

  /// The version of the app, of bounded length; nil where the bundle does not say.
  package var appVersion: String?

  /// When the bundle arrived.
  package var date: String

  /// What is noted as the version of the app where very many versions of a damage are known; no version is this.
  package static let furtherVersion = "\u{1}"

  /// The most versions of the app that are noted of a damage by their names: senders choose them.
  package static let maximumVersions = 200

  /// What is noted as the version.
  ///
  /// - Parameters:
  ///   - isKnown: whether the damage was seen with this version.
  ///   - count: with how many it was seen.
  package static func noted(_ version: String, isKnown: Bool, count: Int) -> String {
    isKnown || count < maximumVersions ? version : furtherVersion
  }

  /// A damage that was seen.
  package init(bundle: String, store: String, fingerprint: DamageFingerprint, appVersion: String?, date: String) {
    self.bundle = bundle
    self.store = store
    self.fingerprint = fingerprint
    self.appVersion = appVersion.map { String(printable($0).prefix(200)) }
    self.date = date
  }
}
