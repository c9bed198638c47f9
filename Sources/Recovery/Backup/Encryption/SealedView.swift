package import AgeEncryption

/// A place of any kind as a holder of secret keys sees it.
package func sealedView(of place: any BackupPlace, with identities: [AgeIdentity]) -> any BackupPlace {
  SealedPlace(base: place, keys: BackupKeys(identities))
}
